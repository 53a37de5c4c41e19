"""No clipping."""

from dataclasses import dataclass

import torch

from lit_byz.robust._base import Clip
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._registries import CLIPS


@CLIPS.register("none")
@dataclass(frozen=True)
class NoClip(Clip):
    """No clipping: every vector stays as it is; the threshold is infinite."""

    def threshold(self, norms: torch.Tensor) -> torch.Tensor:
        return norms.new_full(norms.shape[:-1], torch.inf)

    def apply(self, geometry: Geometry) -> tuple[Geometry, torch.Tensor]:
        # Norms would cost a pass over the data, for nothing.
        return geometry, torch.full(geometry.batch, torch.inf, dtype=torch.float64)
