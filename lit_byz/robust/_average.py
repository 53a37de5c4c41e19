"""The plain mean: no robustness at all."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from lit_byz.robust._base import GeometricRule
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._registries import RULES


@RULES.register("average")
@dataclass(frozen=True)
class Average(GeometricRule):
    """The mean of all vectors: what DSGD does. A single Byzantine vector moves it anywhere.

    >>> Average()(torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]))
    tensor([1., 1.])
    """

    uses_distances: ClassVar[bool] = False

    def weights(self, geometry: Geometry) -> torch.Tensor:
        return torch.full((*geometry.batch, geometry.n), 1.0 / geometry.n, dtype=torch.float64)
