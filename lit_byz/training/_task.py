"""What is differentiated for each worker, and what a method of doing so looks like."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lit_byz.training._flat import FlatParameters
from lit_byz.training._stochastic import WorkerLayers

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Task:
    """What is differentiated: a model, its loss, and the layers that differ between workers."""

    model: nn.Module
    loss: Loss
    flat: FlatParameters
    layers: WorkerLayers

    def output(self, tensors: dict[str, Tensor], x: Tensor) -> Tensor:
        """The model's output for images (N, C, H, W), with other parameters or buffers."""
        # Convolutions on a CPU prefer this layout.
        images = x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x
        return self.call(tensors, images)

    def call(self, tensors: dict[str, Tensor], images: Tensor) -> Tensor:
        # With tie_weights a module that is used in two places does not get its own tensors back.
        output: Tensor = functional_call(self.model, tensors, (images,), tie_weights=False)
        return output


@dataclass(frozen=True)
class FlippedLabels:
    """Flipped labels (h, b) of the same images; their mean gradient is added to ``vector`` (d,)."""

    labels: Tensor
    vector: Tensor


class GradientMethod(Protocol):
    """Adds (1 − β) g_i to row i of the momentums, already scaled by β, and returns the losses."""

    def __call__(
        self,
        task: Task,
        rows: Tensor,
        share: float,
        x: Tensor,
        y: Tensor,
        buffers: dict[str, Tensor],
        flipped: FlippedLabels | None = None,
    ) -> Tensor: ...
