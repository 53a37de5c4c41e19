"""Layers that a worker runs in its own way: dropout and batch norm.

Dropout: each worker has its own masks, drawn from (seed, step) before the gradients are computed,
so that every method of computing them gives the same. Batch norm: each worker normalises with the
statistics of its own batch; the server's running statistics follow the mean of the honest workers'.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from lit_byz._streams import Stream, torch_generator

Undo = Callable[[], None]
# The mean over all honest workers, of values of which a row for each worker here is given.
Mean = Callable[[Tensor], Tensor]
BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d


def over_rows(values: Tensor) -> Tensor:
    """The mean where all workers are here."""
    return values.mean(0)


class MaskedDropout(nn.Module):
    """Dropout by a mask that is given; without one, it draws on its own."""

    mask: Tensor

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.register_buffer("mask", torch.empty(0), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        if self.mask.numel() == 0:
            return nn.functional.dropout(x, self.p)
        return x * self.mask

    def extra_repr(self) -> str:
        return f"p={self.p}"


def replace_dropout(model: nn.Module) -> list[Undo]:
    """Put a :class:`MaskedDropout` in the place of every ``nn.Dropout``; returns how to undo it."""
    undo: list[Undo] = []
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Dropout:
                setattr(module, name, MaskedDropout(child.p).train(child.training))
                undo.append(partial(setattr, module, name, child))
    return undo


class WorkerLayers:
    """The dropout masks and batch statistics of all workers for one step, as stacked buffers."""

    def __init__(self, model: nn.Module, example: Tensor) -> None:
        modules = dict(model.named_modules())
        self.dropouts = _dropout_shapes(model, example)
        self.norms = {k: m for k, m in modules.items() if isinstance(m, BatchNorm)}
        self.momentum = {
            k: 0.1 if m.momentum is None else m.momentum for k, m in self.norms.items()
        }
        for norm in self.norms.values():
            norm.momentum = 1.0  # a worker's statistics are those of its batch, nothing older
        self.device = example.device

    def buffers(
        self,
        seed: int,
        step: int,
        workers: int,
        batch: int,
        part: tuple[int, ...] = (),
        first: int = 0,
    ) -> dict[str, Tensor]:
        """Each worker's masks and statistics for one step: name to (workers, ...).

        ``part`` sets apart what is drawn in several calls for the same step; ``first`` is the
        number of the first worker, where these are some of a run's.
        """
        stacked: dict[str, Tensor] = {}
        for place, (name, (p, shape)) in enumerate(self.dropouts.items()):
            keep = 1 - p
            draw = torch_generator(seed, Stream.MASKS, step, place, *part)
            # Of this type whatever the precision, so that the draws are the same.
            mask = torch.empty(first + workers, batch, *shape, dtype=torch.float32)
            mask = mask.bernoulli_(keep, generator=draw)[first:]
            stacked[f"{name}.mask"] = mask.div_(keep or 1).to(self.device)
        for name, norm in self.norms.items():
            for kind in ("running_mean", "running_var", "num_batches_tracked"):
                value = getattr(norm, kind)
                if value is not None:
                    stacked[f"{name}.{kind}"] = torch.zeros(
                        (workers, *value.shape), dtype=value.dtype, device=value.device
                    )
        return stacked

    def statistics(self) -> list[str]:
        """The names of the running statistics that there are."""
        kinds = ("running_mean", "running_var")
        return [
            f"{name}.{kind}"
            for name, norm in self.norms.items()
            for kind in kinds
            if getattr(norm, kind) is not None
        ]

    @torch.no_grad()
    def follow(self, stacked: dict[str, Tensor], mean: Mean = over_rows) -> None:
        """Move the running statistics towards the mean of the workers'."""
        for key in self.statistics():
            name, _, kind = key.rpartition(".")
            running = getattr(self.norms[name], kind)
            running.lerp_(mean(stacked[key]), self.momentum[name])


@torch.no_grad()
def _dropout_shapes(model: nn.Module, example: Tensor) -> dict[str, tuple[float, torch.Size]]:
    """Each dropout layer's p, and the shape of one example's activations there.

    A layer that does not run exactly once is left out: it cannot be given one mask.
    """
    layers = {k: m for k, m in model.named_modules() if isinstance(m, MaskedDropout)}
    shapes: dict[nn.Module, list[torch.Size]] = {layer: [] for layer in layers.values()}

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        shapes[layer].append(output.shape[1:])

    hooks = [layer.register_forward_hook(note) for layer in layers.values()]
    was_training = model.training
    try:
        if layers:
            model.eval()(example)
    finally:
        model.train(was_training)
        for hook in hooks:
            hook.remove()
    return {k: (m.p, shapes[m][0]) for k, m in layers.items() if len(shapes[m]) == 1}
