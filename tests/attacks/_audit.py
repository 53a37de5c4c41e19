"""How near a search comes to the greatest damage that a dense grid finds."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch

from lit_byz.attacks import ALIE, FOE, Scene, SearchedAttack
from lit_byz.attacks._search import LEVEL
from lit_byz.robust import (
    ARC,
    CAF,
    CWTM,
    MDA,
    NNM,
    SMEA,
    Basis,
    CenteredClipping,
    Clip,
    CWMed,
    GeometricMedian,
    Krum,
    MeaMed,
    MoNNA,
    MultiKrum,
    NoClip,
    RobustAggregator,
    Rule,
    StaticClip,
)
from tests.attacks._reference import dense_factors

SIZES = ((11, 1), (11, 5), (15, 3), (15, 4), (17, 2), (39, 9))
RULES = ("cwtm", "cwmed", "meamed", "gm", "krum", "multi_krum", "centered_clipping")
CLIPS = ("none", "arc", "static")
MIXES = ("none", "nnm")
ATTACKS = {"foe": FOE, "alie": ALIE}
SEARCHES = ("grid", "line")
# Weaker by design: what they reach is shown, not judged.
WEAKER = ("coarse", "published")
POINTS = 400
# The last factor of the grid.
LAST = 1e5
ENOUGH = 0.98


@dataclass(frozen=True)
class Case:
    n: int
    f: int
    rule: str
    clip: str
    mix: str
    attack: str

    def __str__(self) -> str:
        return f"n={self.n} f={self.f} {self.attack} {self.rule} {self.clip} {self.mix}"

    def server(self, honest: torch.Tensor) -> RobustAggregator:
        """Static clipping cuts at half the median norm, so that it cuts every vector."""
        f = self.f
        clips: dict[str, Clip] = {
            "none": NoClip(),
            "arc": ARC(f),
            "static": StaticClip(float(honest.norm(dim=1).median()) / 2),
        }
        rules: dict[str, Rule] = {
            "cwtm": CWTM(f),
            "cwmed": CWMed(),
            "meamed": MeaMed(f),
            "gm": GeometricMedian(),
            "krum": Krum(f),
            "multi_krum": MultiKrum(f),
            "centered_clipping": CenteredClipping(float(honest.norm(dim=1).median())),
            "caf": CAF(f),
            "mda": MDA(f),
            "monna": MoNNA(f),
            "smea": SMEA(f),
        }
        mix = NNM(f) if self.mix == "nnm" else None
        return RobustAggregator(rules[self.rule], clip=clips[self.clip], mix=mix)


@dataclass(frozen=True)
class Result:
    """The share of the dense grid's damage that each search reaches, and who ended at an edge."""

    share: dict[str, float]
    at_edge: dict[str, bool]
    factor: dict[str, float]
    dense_factor: float

    def passes(self) -> bool:
        """Whether the searches that should find nearly everything do."""
        enough = all(self.share[search] >= ENOUGH for search in SEARCHES)
        return enough and not any(self.at_edge[search] for search in SEARCHES)

    def outdone(self) -> bool:
        """Whether a weaker search does more damage than the grid, at a factor where both look.

        The grid takes the smallest factor whose damage is level with the best. Where damage grows
        for ever, the published search ends beyond the grid's last factor.
        """
        best = (1 + LEVEL) * self.share["grid"]
        return any(
            self.share[search] > best and abs(self.factor[search]) <= LAST for search in WEAKER
        )


def cases(
    sizes: tuple[tuple[int, int], ...] = SIZES, rules: tuple[str, ...] = RULES
) -> Iterator[Case]:
    for (n, f), *names in product(sizes, rules, CLIPS, MIXES, ATTACKS):
        yield Case(n, f, *names)


def honest_vectors(kind: str, h: int, d: int) -> torch.Tensor:
    """``random``: noise around a mean. ``heterogeneous``: coordinates and workers of all scales."""
    draw = torch.Generator().manual_seed(1000 * h + d)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw)

    if kind == "random":
        return normal(h, d) + 0.3 * normal(d)
    scale = torch.logspace(-3, 0, d)
    spread = 2 * torch.rand(h, 1, generator=draw)
    return 0.3 * scale * normal(d) + spread * scale * normal(h, d)


def audit(case: Case, honest: torch.Tensor, searches: tuple[str, ...] = SEARCHES) -> Result:
    scene = Scene(Basis(honest), case.f, case.server(honest))
    attack: type[SearchedAttack] = ATTACKS[case.attack]
    dense, damages = dense_damages(scene, attack())
    best = int(damages.argmax())
    share, at_edge, factor = {}, {}, {}
    for search in searches:
        move = attack(search=search).act(scene, {})
        assert move.damage is not None
        assert move.factor is not None
        share[search] = move.damage / float(damages[best])
        at_edge[search], factor[search] = move.at_edge, move.factor
    return Result(share, at_edge, factor, float(dense[best]))


def dense_damages(
    scene: Scene, attack: SearchedAttack, points: int = POINTS
) -> tuple[torch.Tensor, torch.Tensor]:
    """Factors over the whole range, so many for each sign, and their damages, on all columns."""
    basis, start, direction = attack.line(scene)
    centre = torch.zeros(basis.size, dtype=torch.float64)
    centre[: scene.h] = 1 / scene.h
    effort = attack.effort
    both_signs = effort["low"] < 0
    count = 2 * points if both_signs else points
    factors = torch.from_numpy(dense_factors(effort["low"], effort["high"], count))
    sent = start + factors.unsqueeze(1) * direction
    parts = [scene.server.damages(scene.facing(basis, some), centre) for some in sent.split(64)]
    return factors, torch.cat(parts)
