"""A little is enough."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch.nn.functional import pad

from lit_byz._checks import check_minority
from lit_byz.attacks._base import ATTACKS, Move, Scene, State
from lit_byz.attacks._searched import SearchedAttack
from lit_byz.robust import Basis

# On either side as far, and as finely, as FOE looks on one.
BOTH_SIGNS = {"low": -1e5, "high": 1e5, "points": 640}


@ATTACKS.register("alie")
@dataclass(frozen=True)
class ALIE(SearchedAttack):
    """A little is enough: sends m̄ + τσ, σ the honest vectors' coordinate-wise deviation (ddof 1).

    Baruch, Baruch and Goldberg, *A Little Is Enough: Circumventing Defenses for Distributed
    Learning*, NeurIPS 2019. ``search="z_max"`` takes the classical factor of that paper, which
    knows n and f only: the largest z at which enough honest workers lie farther out to make a
    majority with the Byzantine ones. Honest vectors need not lie evenly about their mean, so both
    signs of τ are searched; ``search="coarse"`` looks at those of [low, high], half of its points
    for each, ``search="published"`` at τ ≥ 0 only. The authors' library has the same τ and σ.

    >>> ALIE(tau=1.0)(torch.tensor([[1.0, 0.0], [3.0, 0.0]]), f=1)
    tensor([3.4142, 0.0000])
    """

    numerics: ClassVar[int] = 2
    efforts: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        **SearchedAttack.efforts,
        "grid": BOTH_SIGNS,
        "line": {**BOTH_SIGNS, "evaluations": 16},
        "coarse": {"low": 0.5, "high": 5.0, "points": 20, "mirrored": True},
        "z_max": {},
    }

    search: Literal["grid", "line", "published", "coarse", "z_max"] = "grid"

    def line(self, scene: Scene) -> tuple[Basis, torch.Tensor, torch.Tensor]:
        _, deviation = scene.honest.spread
        direction = torch.zeros(scene.h + 1, dtype=torch.float64)
        direction[-1] = 1
        return scene.with_row(deviation), pad(scene.mean, (0, 1)), direction

    def plan(self, scene: Scene, state: State) -> Move:
        if self.search == "z_max" and self.tau is None:
            check_minority(self, scene.f, scene.n, "workers")
            return replace(self, tau=z_max(scene.n, scene.f)).plan(scene, state)
        return super().plan(scene, state)


def z_max(n: int, f: int) -> float:
    """The largest z with Φ(z) < (n − f − s)/(n − f), s = ⌊n/2 + 1⌋ − f supporters needed."""
    supporters = n // 2 + 1 - f
    share = torch.tensor((n - f - supporters) / (n - f), dtype=torch.float64)
    return float(torch.special.ndtri(share))
