"""Centered clipping."""

from dataclasses import dataclass

import torch
from torch.nn.functional import pad

from lit_byz._checks import keep_integer, keep_number
from lit_byz.robust._affine import origin, squared_distances_to
from lit_byz.robust._base import GeometricRule
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._registries import RULES


@RULES.register("centered_clipping")
@dataclass(frozen=True)
class CenteredClipping(GeometricRule):
    """Centered clipping: v ← v + mean of the x_i − v, each clipped at τ; v starts at the origin.

    Karimireddy et al., *Learning from History for Byzantine Robust Optimization*, ICML 2021, with
    no memory between calls.

    >>> CenteredClipping(tau=1.0)(torch.tensor([[0.5], [0.5], [100.0]]))
    tensor([0.6667])
    """

    tau: float = 10.0
    iterations: int = 1

    def __post_init__(self) -> None:
        keep_number(self, "tau", 0, above=True)
        keep_integer(self, "iterations", 1)

    def weights(self, geometry: Geometry) -> torch.Tensor:
        at = origin(geometry)
        for _ in range(self.iterations):
            gaps = squared_distances_to(at, geometry)[..., :-1].sqrt()
            share = (self.tau / gaps).clamp(max=1) / geometry.n
            at = at * (1 - share.sum(-1, keepdim=True)) + pad(share, (0, 1))
        return at[..., :-1]
