"""No mixing."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from lit_byz.robust._base import Mix
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._registries import MIXES


@MIXES.register("none")
@dataclass(frozen=True)
class NoMix(Mix):
    """No mixing: the rule sees the clipped vectors themselves."""

    uses_distances: ClassVar[bool] = False

    def matrix(self, geometry: Geometry, step: int = 0) -> torch.Tensor:
        return torch.eye(geometry.n, dtype=torch.float64)

    def apply(self, geometry: Geometry, step: int = 0) -> Geometry:
        return geometry
