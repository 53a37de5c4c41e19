"""Layers that a worker runs in its own way: dropout and batch norm.

Dropout: each worker has its own masks, drawn from (seed, step) before the gradients are computed,
so that every way of computing them gives the same. Batch norm: each worker normalises with the
statistics of its own batch; the server's running statistics follow the mean of the honest workers'.
"""

import numpy as np
import torch
from torch import Tensor, nn

_MASK_STREAM = 3
BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d


class MaskedDropout(nn.Module):
    """Dropout by a mask that is given."""

    mask: Tensor

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.shape: torch.Size | None = None  # of one example's activations
        self.register_buffer("mask", torch.empty(0), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            self.shape = x.shape[1:]
            return x
        return x * self.mask

    def extra_repr(self) -> str:
        return f"p={self.p}"


def replace_dropout(model: nn.Module) -> None:
    """Put a :class:`MaskedDropout` in the place of every ``nn.Dropout`` of a model."""
    for module in model.modules():
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, MaskedDropout(child.p))


class WorkerLayers:
    """The dropout masks and batch statistics of all workers for one step, as stacked buffers."""

    def __init__(self, model: nn.Module, example: Tensor) -> None:
        modules = dict(model.named_modules())
        self.dropouts = {k: m for k, m in modules.items() if isinstance(m, MaskedDropout)}
        self.norms = {k: m for k, m in modules.items() if isinstance(m, BatchNorm)}
        self.momentum = {
            k: 0.1 if m.momentum is None else m.momentum for k, m in self.norms.items()
        }
        for norm in self.norms.values():
            norm.momentum = 1.0  # a worker's statistics are those of its batch, nothing older
        if self.dropouts:
            was_training = model.training
            with torch.no_grad():
                model.eval()(example)
            model.train(was_training)

    def buffers(self, seed: int, step: int, workers: int, batch: int) -> dict[str, Tensor]:
        """Each worker's masks and statistics for one step: name to (workers, ...)."""
        stacked: dict[str, Tensor] = {}
        for place, (name, layer) in enumerate(self.dropouts.items()):
            assert layer.shape is not None
            keep = 1 - layer.p
            key = np.random.SeedSequence([seed, _MASK_STREAM, step, place]).generate_state(1)
            draw = torch.Generator().manual_seed(int(key[0]))
            mask = torch.empty(workers, batch, *layer.shape).bernoulli_(keep, generator=draw)
            stacked[f"{name}.mask"] = mask.div_(keep).to(layer.mask.device)
        for name, norm in self.norms.items():
            for kind in ("running_mean", "running_var", "num_batches_tracked"):
                value = getattr(norm, kind)
                if value is not None:
                    stacked[f"{name}.{kind}"] = torch.zeros(
                        (workers, *value.shape), dtype=value.dtype, device=value.device
                    )
        return stacked

    @torch.no_grad()
    def follow(self, stacked: dict[str, Tensor]) -> None:
        """Move the running statistics towards the mean of the workers'."""
        for name, norm in self.norms.items():
            for kind in ("running_mean", "running_var"):
                running = getattr(norm, kind)
                if running is not None:
                    running.lerp_(stacked[f"{name}.{kind}"].mean(0), self.momentum[name])
