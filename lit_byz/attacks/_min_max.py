"""Min-Max and Min-Sum: as far out as still looks honest."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch.nn.functional import pad

from lit_byz.attacks._base import ATTACKS, Attack, Move, Scene, State
from lit_byz.robust import Basis, Geometry
from lit_byz.robust.vectors import coordinate_spread


@dataclass(frozen=True)
class _Disguised(Attack):
    """Sends m̄ + γp with the largest γ that keeps its distances within those among the honest.

    The perturbation p is −σ (``std``), −m̄/‖m̄‖ (``unit``) or −sign(m̄) (``sign``). The distances
    are quadratic in γ, so the largest γ is a root, not a search.
    """

    by_columns: ClassVar[bool] = True

    perturbation: Literal["std", "unit", "sign"] = "std"

    def __post_init__(self) -> None:
        if self.perturbation not in ("std", "unit", "sign"):
            raise ValueError(
                f"{type(self).__name__}: perturbation must be one of std, unit, sign, "
                f"got {self.perturbation!r}"
            )

    def largest(self, among: torch.Tensor, gaps: torch.Tensor, along: torch.Tensor) -> float:
        """γ, for a p of length 1, honest distances² (h, h), ‖m̄ − x_i‖² and ⟨p, m̄ − x_i⟩ (h,)."""
        raise TypeError(f"{type(self).__name__} does not say how far it goes")

    def plan(self, scene: Scene, state: State) -> Move:
        mean, deviation = coordinate_spread(scene.honest.rows)
        direction = {"std": deviation, "unit": mean, "sign": mean.sign()}[self.perturbation]
        length = float(scene.honest.norm(direction.double()))
        basis = scene.with_row(-direction / length if length > 0 else direction)
        start = pad(scene.mean, (0, 1))
        own = torch.eye(scene.h, scene.h + 1, dtype=torch.float64)
        gaps, along = _seen_from(basis, start, own)
        among = Geometry(basis, own).squared_distances[:-1, :-1]
        factor = self.largest(among, gaps, along) if length > 0 else 0.0
        sent = start.clone()
        sent[-1] = factor
        return Move(basis, sent, factor)


def _seen_from(
    basis: Basis, start: torch.Tensor, own: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """‖m̄ − x_i‖² and ⟨p, m̄ − x_i⟩ for every honest i, p being the last row of the basis."""
    distances = Geometry(basis, torch.cat([own, start.unsqueeze(0)])).squared_distances
    return distances[-2, :-2], (start - own) @ basis.gram[:, -1]


@ATTACKS.register("min_max")
class MinMax(_Disguised):
    """Min-Max: no farther from any honest vector than the two farthest honest ones are apart.

    Shejwalkar and Houmansadr, *Manipulating the Byzantine*, NDSS 2021.
    """

    def largest(self, among: torch.Tensor, gaps: torch.Tensor, along: torch.Tensor) -> float:
        roots = -along + (along.square() + (among.max() - gaps).clamp(min=0)).sqrt()
        return float(roots.min())


@ATTACKS.register("min_sum")
class MinSum(_Disguised):
    """Min-Sum: its squared distances to the honest sum to no more than any honest vector's do.

    Shejwalkar and Houmansadr, *Manipulating the Byzantine*, NDSS 2021.
    """

    def largest(self, among: torch.Tensor, gaps: torch.Tensor, along: torch.Tensor) -> float:
        middle = along.mean()
        room = (among.sum(1).max() - gaps.sum()).clamp(min=0) / len(gaps)
        return float(-middle + (middle.square() + room).sqrt())
