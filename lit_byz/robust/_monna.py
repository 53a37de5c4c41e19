"""MoNNA: the nearest neighbours of one trusted vector."""

from dataclasses import dataclass

import torch

from lit_byz._checks import keep_integer
from lit_byz.robust._base import Choice, GeometricRule
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._registries import RULES


@RULES.register("monna")
@dataclass(frozen=True)
class MoNNA(GeometricRule):
    """MoNNA, nearest-neighbour averaging: the mean of the n − f vectors nearest to a trusted one.

    Farhadkhani et al., *Robust Collaborative Learning with Linear Gradient Overhead*, ICML 2023,
    where workers average without a server and each trusts its own vector. ``pivot`` is the row of
    the trusted one, from 0. It is its own nearest; among equally distant vectors the one that comes
    first is nearer.

    Everything rests on the pivot: if an attacker sends it, nothing is promised. In training the
    honest workers' rows come first, so that row 0 is honest; bucketing shuffles the rows.

    >>> x = torch.tensor([[0.0], [1.0], [9.0]])
    >>> MoNNA(f=1)(x), MoNNA(f=1, pivot=2)(x)
    (tensor([0.5000]), tensor([5.]))
    """

    f: int
    pivot: int = 0

    def __post_init__(self) -> None:
        keep_integer(self, "f", 0)
        keep_integer(self, "pivot", 0)

    def check(self, n: int) -> None:
        super().check(n)
        if self.pivot >= n:
            raise ValueError(
                f"MoNNA: pivot must be one of the rows 0 to n - 1, got pivot={self.pivot}, n={n} "
                "rows"
            )

    def _selected(self, geometry: Geometry) -> torch.Tensor:
        distances = geometry.squared_distances[..., self.pivot, :-1].clone()
        distances[..., self.pivot] = -1  # before any copy of it
        nearest = distances.argsort(dim=-1, stable=True)[..., : geometry.n - self.f]
        return torch.zeros_like(distances, dtype=torch.bool).scatter_(-1, nearest, True)

    def weights(self, geometry: Geometry) -> torch.Tensor:
        return self._selected(geometry).double() / (geometry.n - self.f)

    def choice(self, geometry: Geometry) -> Choice:
        return Choice(self.weights(geometry), self._selected(geometry))
