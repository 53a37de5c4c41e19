"""Geometric median."""

from dataclasses import dataclass

import torch
from torch.nn.functional import pad

from lit_byz._checks import keep_integer, keep_number
from lit_byz.robust import _kernels
from lit_byz.robust._affine import origin, squared_distances_to
from lit_byz.robust._base import GeometricRule
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._registries import RULES


@RULES.register("gm")
@dataclass(frozen=True)
class GeometricMedian(GeometricRule):
    """Geometric median by smoothed Weiszfeld iterations, started at the origin.

    Each iteration weighs vector i by 1/max(ν, ‖z − x_i‖) (Pillutla et al., *Robust Aggregation for
    Federated Learning*, 2022). It ends early once z moves by at most ``tolerance`` times its
    distance to the nearest vector (ν at least): beside a vector that holds z back for a while,
    steps are small too. The defaults are those of the published experiments; three iterations from
    the origin carry no guarantee and are not translation-equivariant: raise ``iterations`` and
    lower ``nu`` for the geometric median itself.

    >>> rule = GeometricMedian(nu=1e-9, iterations=1000, tolerance=1e-12)
    >>> rule(torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    tensor([0.7887, 0.7887])
    """

    nu: float = 0.1
    iterations: int = 3
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        keep_number(self, "nu", 0, above=True)
        keep_integer(self, "iterations", 1)
        keep_number(self, "tolerance", 0)

    def weights(self, geometry: Geometry) -> torch.Tensor:
        distances = geometry.squared_distances
        small = distances.reshape(-1, distances.shape[-1])
        if _kernels.serves(small):
            inner = geometry.inner_products.contiguous()
            found = torch.empty(*distances.shape[:-2], geometry.n, dtype=torch.float64)
            _kernels.call(
                "weiszfeld", small, inner, self.nu, self.iterations, self.tolerance, found
            )
            return found
        at = origin(geometry)
        moving = torch.ones(distances.shape[:-2], dtype=torch.bool)
        for _ in range(self.iterations):
            gaps = squared_distances_to(at, geometry)[..., :-1].sqrt()
            pull = 1 / gaps.clamp(min=self.nu)
            new = pad(pull / pull.sum(-1, keepdim=True), (0, 1))
            step = new - at
            at = torch.where(moving.unsqueeze(-1), new, at)
            if self.tolerance > 0:
                moved = -((step.unsqueeze(-2) @ distances).squeeze(-2) * step).sum(-1) / 2
                near = gaps.amin(-1).clamp(min=self.nu)
                moving = moving & (moved > (self.tolerance * near).square())
                if not bool(moving.any()):
                    break
        return at[..., :-1]
