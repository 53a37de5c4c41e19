"""Krum and Multi-Krum."""

from dataclasses import dataclass

import torch

from lit_byz._checks import keep_integer
from lit_byz.robust._base import Choice, GeometricRule
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._registries import RULES


@dataclass(frozen=True)
class _Scored(GeometricRule):
    """The mean of the vectors with the lowest scores.

    A vector's score is the sum of its squared distances to the n − f − 1 nearest others; of equal
    scores the one that comes first is lower.
    """

    f: int

    def __post_init__(self) -> None:
        keep_integer(self, "f", 0)

    def _count(self, n: int) -> int:
        return n - self.f

    def _selected(self, geometry: Geometry) -> torch.Tensor:
        n = geometry.n
        distances = geometry.squared_distances[..., :-1, :-1].clone()
        distances.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
        scores = distances.sort(dim=-1).values[..., : n - self.f - 1].sum(-1)
        lowest = scores.argsort(dim=-1, stable=True)[..., : self._count(n)]
        return torch.zeros_like(scores, dtype=torch.bool).scatter_(-1, lowest, True)

    def weights(self, geometry: Geometry) -> torch.Tensor:
        return self._selected(geometry).double() / self._count(geometry.n)

    def choice(self, geometry: Geometry) -> Choice:
        return Choice(self.weights(geometry), self._selected(geometry))


@RULES.register("krum")
class Krum(_Scored):
    """Krum: the one vector with the lowest score, which is its squared distance to its neighbours.

    Blanchard et al., *Machine Learning with Adversaries*, NeurIPS 2017.

    >>> Krum(f=1)(torch.tensor([[0.0], [1.0], [9.0]]))
    tensor([0.])
    """

    def _count(self, n: int) -> int:
        return 1


@RULES.register("multi_krum")
class MultiKrum(_Scored):
    """Multi-Krum: the mean of the n − f vectors with Krum's lowest scores.

    Blanchard et al., *Machine Learning with Adversaries*, NeurIPS 2017.

    >>> MultiKrum(f=1)(torch.tensor([[0.0], [1.0], [9.0]]))
    tensor([0.5000])
    """
