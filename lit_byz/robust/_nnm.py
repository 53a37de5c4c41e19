"""Nearest-neighbour mixing."""

from dataclasses import dataclass

import torch

from lit_byz._checks import check_minority, keep_integer
from lit_byz.robust import _kernels
from lit_byz.robust._base import Mix
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._registries import MIXES


@MIXES.register("nnm")
@dataclass(frozen=True)
class NNM(Mix):
    """Nearest-neighbour mixing: each vector becomes the mean of its n − f nearest, itself included.

    Allouah et al., *Fixing by Mixing*, AISTATS 2023. Among equally distant vectors the one that
    comes first is nearer.

    >>> NNM(f=1)(torch.tensor([[0.0], [1.0], [5.0]]))
    tensor([[0.5000],
            [0.5000],
            [3.0000]])
    """

    f: int

    def __post_init__(self) -> None:
        keep_integer(self, "f", 0)

    def check(self, n: int) -> None:
        check_minority(self, self.f, n)

    def matrix(self, geometry: Geometry, step: int = 0) -> torch.Tensor:
        keep = geometry.n - self.f
        squares = geometry.squared_distances
        small = squares.reshape(-1, squares.shape[-1])
        if _kernels.serves(small):
            matrix = torch.empty(*squares.shape[:-2], geometry.n, geometry.n, dtype=torch.float64)
            _kernels.call("nearest", small, geometry.n, keep, matrix, effort=8)
            return matrix
        # A vector is its own nearest, before any copy of it.
        distances = squares[..., :-1, :-1] - torch.eye(geometry.n, dtype=torch.float64)
        nearest = distances.argsort(dim=-1, stable=True)[..., :keep]
        return torch.zeros_like(distances).scatter_(-1, nearest, 1.0 / keep)
