"""Methods of computing the gradients of all honest workers.

All give the same numbers up to rounding; which is fastest depends on the model.
"""

from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vmap

from lit_byz.training._flat import FlatParameters
from lit_byz.training._joined import joined, supports_joined
from lit_byz.training._stochastic import WorkerLayers, replace_dropout
from lit_byz.training._task import FlippedLabels, GradientMethod, Task

__all__ = [
    "METHODS",
    "FlatParameters",
    "FlippedLabels",
    "GradientMethod",
    "Task",
    "WorkerLayers",
    "batched",
    "joined",
    "loop",
    "replace_dropout",
    "supports_joined",
]


def loop(
    task: Task,
    rows: Tensor,
    share: float,
    x: Tensor,
    y: Tensor,
    buffers: dict[str, Tensor],
    flipped: FlippedLabels | None = None,
) -> Tensor:
    """One worker after the other; autograd adds straight into the rows."""
    losses = []
    for worker in range(len(x)):
        task.flat.attach(rows[worker])
        own = {name: value[worker] for name, value in buffers.items()}
        output = task.output(own, x[worker])
        loss = task.loss(output, y[worker])
        (share * loss).backward(retain_graph=flipped is not None)
        if flipped is not None:
            task.flat.attach(flipped.vector)
            (task.loss(output, flipped.labels[worker]) / len(x)).backward()
        losses.append(loss.detach())
    return torch.stack(losses)


def batched(
    task: Task,
    rows: Tensor,
    share: float,
    x: Tensor,
    y: Tensor,
    buffers: dict[str, Tensor],
    flipped: FlippedLabels | None = None,
) -> Tensor:
    """All workers at once through ``torch.func.vmap``."""

    def one(p: Any, own: Any, images: Tensor, labels: Tensor) -> tuple[Tensor, Any]:
        loss = task.loss(task.call({**task.flat.named(p), **own}, images), labels)
        return loss, (loss, own)

    detached = [p.detach() for p in task.flat.parameters]
    each = vmap(grad(one, has_aux=True), in_dims=(None, 0, 0, 0), randomness="different")
    gradients, (losses, after) = each(detached, buffers, x, y)
    for view, gradient in zip(task.flat.views(rows), gradients, strict=True):
        view.add_(gradient.reshape(view.shape), alpha=share)
    for name, value in after.items():
        buffers[name].copy_(value)
    if flipped is not None:
        task.flat.attach(flipped.vector)
        for worker in range(len(x)):
            own = {name: value[worker] for name, value in buffers.items()}
            loss = task.loss(task.output(own, x[worker]), flipped.labels[worker])
            (loss / len(x)).backward()
    return losses.detach()


METHODS: dict[str, GradientMethod] = {"loop": loop, "joined": joined, "vmap": batched}
