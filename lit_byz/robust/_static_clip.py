"""Static clipping: one threshold for all time."""

from dataclasses import dataclass

import torch

from lit_byz._checks import keep_number
from lit_byz.robust._base import Clip
from lit_byz.robust._registries import CLIPS


@CLIPS.register("static")
@dataclass(frozen=True)
class StaticClip(Clip):
    """Static clipping: ``min(1, C/‖x‖) x`` for every vector x.

    With a threshold that does not depend on its input no rule stays (f, κ)-robust, for any κ
    (Lemma 3.1 of Allouah et al., *Adaptive Gradient Clipping for Robust Federated Learning*, 2025).

    >>> StaticClip(C=1.0)(torch.tensor([[3.0, 4.0], [0.1, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.1000, 0.0000]])
    """

    C: float

    def __post_init__(self) -> None:
        keep_number(self, "C", 0)

    def threshold(self, norms: torch.Tensor) -> torch.Tensor:
        return norms.new_full(norms.shape[:-1], float(self.C))
