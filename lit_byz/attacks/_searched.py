"""Attacks along a direction, with a factor that is given or searched for."""

from dataclasses import dataclass

import torch

from lit_byz._checks import check_integer, check_number
from lit_byz.attacks._base import Attack, Move, Scene, State, assumed_server
from lit_byz.attacks._sample import sample_columns, thin
from lit_byz.attacks._search import Care, Found, grid_search, line_search
from lit_byz.robust import CLIPS, RULES, Basis, CoordinateRule, Geometry, RobustAggregator

# A larger factor would make float32 vectors overflow.
LARGEST = 1e30

# A batch of factors is so large that its small matrices, n² numbers for each, stay in cache.
CACHED = 1 << 15

# Coordinate-wise rules are looked at through so many columns: the first number tells where the
# damage has its peaks, the second how high they are.
LOCATING = 2048
MEASURING = 8192


@dataclass(frozen=True)
class SearchedAttack(Attack):
    """Sends start + τ · direction; without ``tau``, the τ that does the most damage to the server.

    Both searches look at ``points`` factors in [low, high]. ``grid`` then refines around the
    highest peaks; ``line`` climbs from them, and from 0, for ``evaluations`` rounds. The attackers
    know the server's whole step, unless ``assumed_rule`` or ``assumed_clip`` name what they take
    its rule or clipping for.
    """

    tau: float | None = None
    search: str = "grid"
    low: float = 0.0
    high: float = 1e5
    points: int = 320
    evaluations: int = 16
    assumed_rule: str | None = None
    assumed_clip: str | None = None

    def __post_init__(self) -> None:
        for name in ("tau", "low", "high"):
            value = getattr(self, name)
            if name != "tau" or value is not None:
                check_number(self, name, value, -LARGEST, LARGEST)
        if self.search not in self.searches():
            options = ", ".join(self.searches())
            raise ValueError(
                f"{type(self).__name__}: search must be one of {options}, got {self.search!r}"
            )
        if self.low >= self.high:
            raise ValueError(
                f"{type(self).__name__}: high must be above low={self.low}, got {self.high}"
            )
        for known, assumed in ((RULES, self.assumed_rule), (CLIPS, self.assumed_clip)):
            if assumed is not None:
                _ = known[assumed]  # an unknown name is an error now, not at the first step
        check_integer(self, "points", self.points, 3)
        check_integer(self, "evaluations", self.evaluations, 3)

    @staticmethod
    def searches() -> tuple[str, ...]:
        return ("grid", "line")

    def line(self, scene: Scene) -> tuple[Basis, torch.Tensor, torch.Tensor]:
        """A basis, and over it the coefficients of start and direction."""
        raise TypeError(f"{type(self).__name__} does not say along which line it searches")

    def plan(self, scene: Scene, state: State) -> Move:
        basis, start, direction = self.line(scene)
        if self.tau is not None:
            return Move(basis, start + self.tau * direction, float(self.tau))
        found = self._find(scene, basis, start, direction)
        sent = start + found.factor * direction
        return Move(basis, sent, found.factor, found.damage, found.at_edge)

    def _find(
        self, scene: Scene, basis: Basis, start: torch.Tensor, direction: torch.Tensor
    ) -> Found:
        server = assumed_server(scene, self.assumed_rule, self.assumed_clip)
        centre = torch.zeros(basis.size, dtype=torch.float64)
        centre[: scene.h] = scene.mean
        samples = _samples(basis, scene.h, server)
        batch = max(1, CACHED // scene.n**2)

        def damage(factors: torch.Tensor, care: Care) -> torch.Tensor:
            found = []
            for sent in (start + factors.unsqueeze(-1) * direction).split(batch):
                received = scene.facing(basis, sent)
                if care in samples:
                    seen = server.prepare(received, scene.step).geometry.matrix
                    found.append(server.rule.damages(Geometry(samples[care], seen), centre))
                else:
                    found.append(server.damages(received, centre, scene.step))
            # A vector that overflows is replaced by zeros: no attack at all.
            return torch.cat(found).nan_to_num(nan=0.0, posinf=0.0)

        low, high = float(self.low), float(self.high)
        if self.search == "line":
            return line_search(damage, low, high, self.points, self.evaluations)
        return grid_search(damage, low, high, self.points)


def _samples(basis: Basis, honest: int, server: RobustAggregator) -> dict[Care, Basis]:
    """The columns to look at where not all are needed: clipping and mixing still see every one."""
    few = basis.rows.shape[-1] <= MEASURING
    if few or server.bound_output or not isinstance(server.rule, CoordinateRule):
        return {}
    sample = sample_columns(basis, honest, MEASURING)
    return {Care.LOCATE: thin(sample, MEASURING // LOCATING), Care.MEASURE: sample}
