"""Attacks along a direction, with a factor that is given or searched for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import torch
from torch.nn.functional import pad

from lit_byz._checks import check_number, keep_integer, keep_number
from lit_byz.attacks._base import Attack, Move, Scene, State, assumed_server
from lit_byz.attacks._returned import floats, kind_of
from lit_byz.attacks._sample import sample_columns, thin
from lit_byz.attacks._search import (
    Care,
    Found,
    coarse_search,
    grid_search,
    line_search,
    published_search,
)
from lit_byz.registry import shown_how
from lit_byz.robust import CLIPS, RULES, Basis, CoordinateRule, RobustAggregator
from lit_byz.robust.vectors import Beside

# A larger factor would make float32 vectors overflow.
LARGEST = 1e30

# A batch of factors is so large that its small matrices, n² numbers for each, stay in cache.
CACHED = 1 << 17

# Coordinate-wise rules are looked at through so many columns: the first number tells where the
# damage has its peaks, the second how high they are.
LOCATING = 2048
MEASURING = 8192


SEARCHES: dict[str, Callable[..., Found]] = {
    "grid": grid_search,
    "line": line_search,
    "published": published_search,
    "coarse": coarse_search,
}


@dataclass(frozen=True)
class SearchedAttack(Attack):
    """Sends start + τ · direction; without ``tau``, the τ that does the most damage to the server.

    ``search`` says how hard the attackers look for it: see :data:`lit_byz.attacks.STRENGTHS`.
    ``low``, ``high``, ``points`` and ``evaluations`` set the search's range and work; none stands
    for the search's own value, and one that the search does not use is refused. The attackers know
    the server's whole step, unless ``assumed_rule`` or ``assumed_clip`` name what they take its
    rule or clipping for.
    """

    to_write: ClassVar[tuple[str, ...]] = ("line", "plan", "act")
    example: ClassVar[str] = (
        "from lit_byz.attacks import SearchedAttack\n"
        "class MyAttack(SearchedAttack):\n"
        "    def line(self, scene): return scene.honest, scene.mean, -scene.mean"
    )
    by_columns: ClassVar[bool] = True
    # What every search works with; a setting that is an argument too can be given instead.
    efforts: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "grid": {"low": 0.0, "high": 1e5, "points": 320},
        "line": {"low": 0.0, "high": 1e5, "points": 320, "evaluations": 16},
        "published": {"start": 0.0, "evaluations": 20},
        "coarse": {"low": 0.5, "high": 10.0, "points": 20},
    }

    tau: float | None = None
    search: str = "grid"
    low: float | None = None
    high: float | None = None
    points: int | None = None
    evaluations: int | None = None
    assumed_rule: str | None = None
    assumed_clip: str | None = None

    def __post_init__(self) -> None:
        if self.tau is not None:
            keep_number(self, "tau", -LARGEST, LARGEST)
        if self.search not in self.searches():
            options = ", ".join(self.searches())
            raise ValueError(
                f"{type(self).__name__}: search must be one of {options}, got {self.search!r}"
            )
        for known, assumed in ((RULES, self.assumed_rule), (CLIPS, self.assumed_clip)):
            if assumed is not None:
                _ = known[assumed]  # an unknown name is an error now, not at the first step
        self._check_effort()

    def _check_effort(self) -> None:
        for name, value in self._given().items():
            if name not in self.efforts[self.search]:
                raise ValueError(
                    f"{type(self).__name__}: {name} must be left out, because "
                    f"search={self.search!r} does not use it, got {value!r}"
                )
            if name in ("low", "high"):
                keep_number(self, name, -LARGEST, LARGEST)
            else:
                keep_integer(self, name, 3)
        effort = self.effort
        if "low" in effort and effort["low"] >= effort["high"]:
            raise ValueError(
                f"{type(self).__name__}: high must be above low={effort['low']}, "
                f"got {effort['high']}"
            )
        if effort.get("mirrored"):
            check_number(self, "low", effort["low"], 0, LARGEST, above=True)
            if effort["points"] % 2:
                raise ValueError(
                    f"{type(self).__name__}: points must be even, one half for each sign, "
                    f"got {effort['points']}"
                )

    def _given(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in ("low", "high", "points", "evaluations")}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def effort(self) -> dict[str, Any]:
        """What the chosen search works with: its own values, and those given instead."""
        given = self._given()
        given.update({name: float(given[name]) for name in ("low", "high") if name in given})
        return {**self.efforts[self.search], **given}

    @classmethod
    def searches(cls) -> tuple[str, ...]:
        return tuple(cls.efforts)

    def line(self, scene: Scene) -> tuple[Basis, torch.Tensor, torch.Tensor]:
        """A basis, and over it the coefficients of start and direction."""
        raise TypeError(f"{type(self).__name__} does not say along which line it searches")

    def plan(self, scene: Scene, state: State) -> Move:
        found = self.line(scene)
        with shown_how(type(self)):
            basis, start, direction = _as_line(self, found)
        if self.tau is not None:
            return Move(basis, start + self.tau * direction, float(self.tau))
        best = self._find(scene, basis, start, direction)
        sent = start + best.factor * direction
        return Move(basis, sent, best.factor, best.damage, best.at_edge)

    def _find(
        self, scene: Scene, basis: Basis, start: torch.Tensor, direction: torch.Tensor
    ) -> Found:
        server = assumed_server(scene, self.assumed_rule, self.assumed_clip)
        # Most of what is sent is made of the honest mean: with it, of two vectors at most.
        beside = Beside(basis, pad(scene.mean, (0, basis.size - scene.h)))
        start, direction = beside.express(start), beside.express(direction)
        samples = cache(lambda: _samples(beside, scene.honest, server))
        on_cpu = basis.rows.device.type == "cpu"

        def damage(factors: torch.Tensor, care: Care) -> torch.Tensor:
            found = []
            sample = None if care is Care.SETTLE else samples().get(care)
            # Elsewhere every batch is a wait for the device.
            batch = max(1, CACHED // scene.n**2) if on_cpu else len(factors)
            for sent in (start + factors.unsqueeze(-1) * direction).split(batch):
                received = scene.facing(beside, sent)
                found.append(server.damages(received, beside.last, scene.step, sample))
            # A vector that overflows is replaced by zeros: no attack at all.
            return torch.cat(found).nan_to_num(nan=0.0, posinf=0.0)

        return SEARCHES[self.search](damage, **self.effort)


def _as_line(attack: SearchedAttack, found: Any) -> tuple[Basis, torch.Tensor, torch.Tensor]:
    """What ``attack.line`` returned; anything that is no line is an error that says so."""
    must = f"{type(attack).__name__}.line: must return a basis, start and direction"
    if not isinstance(found, tuple | list):
        raise TypeError(f"{must}, got {kind_of(found)}")
    if len(found) != 3:
        raise ValueError(f"{must}, got {len(found)} values")
    basis = found[0]
    if not isinstance(basis, Basis):
        raise TypeError(f"{must}, the basis one such as scene.honest, got {kind_of(basis)}")
    m = basis.size
    must = f"{must}, both floating-point of shape ({m},), one for each row of the basis"
    start, direction = (floats(must, given, [(m,)]) for given in found[1:])
    return basis, start, direction


def _samples(basis: Beside, honest: Basis, server: RobustAggregator) -> dict[Care, Beside]:
    """The columns to look at where not all are needed: clipping and mixing still see every one."""
    few = basis.width <= MEASURING
    if few or server.bound_output or not isinstance(server.rule, CoordinateRule):
        return {}
    sample = sample_columns(basis.whole, honest, MEASURING)
    samples = {Care.LOCATE: thin(sample, MEASURING // LOCATING), Care.MEASURE: sample}
    return {care: basis.seen_through(columns) for care, columns in samples.items()}
