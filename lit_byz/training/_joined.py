"""Gradients of all workers from one pass, for models of linear and convolutional layers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lit_byz.training import _convolution
from lit_byz.training._pooled import PooledConvolution, Unfit, pooled_convolutions
from lit_byz.training._stochastic import BatchNorm
from lit_byz.training._task import FlippedLabels, Task


def joined(
    task: Task,
    rows: Tensor,
    share: float,
    x: Tensor,
    y: Tensor,
    buffers: dict[str, Tensor],
    flipped: FlippedLabels | None = None,
) -> Tensor:
    """One forward and backward over all examples, and per worker only the weights' gradients.

    Gradients with respect to activations do not mix examples, so one pass serves all workers; a
    layer's weight gradient then comes from a worker's part of its inputs and output gradients.
    """
    try:
        with pooled_convolutions(task.model, x.flatten(0, 1)):
            return _one_pass(task, rows, share, x, y, buffers, flipped)
    except Unfit:  # nothing has been added yet
        return _one_pass(task, rows, share, x, y, buffers, flipped)


def _one_pass(
    task: Task,
    rows: Tensor,
    share: float,
    x: Tensor,
    y: Tensor,
    buffers: dict[str, Tensor],
    flipped: FlippedLabels | None,
) -> Tensor:
    workers = len(x)
    flat_buffers = {name: value.flatten(0, 1) for name, value in buffers.items()}
    with _frozen(task.model), _probes(task.model) as probes:
        output = task.output(flat_buffers, x.flatten(0, 1))
        losses = torch.stack(
            [task.loss(*part) for part in zip(output.chunk(workers), y, strict=True)]
        )
        _check_run(task, probes)
        places = [probe.output for probe in probes.values()]
        deltas = torch.autograd.grad(losses.sum(), places, retain_graph=flipped is not None)
        if flipped is not None:
            other = torch.autograd.grad(task.loss(output, flipped.labels.flatten()), places)
    _add_weight_gradients(task, list(probes.values()), deltas, rows, share)
    if flipped is not None:
        _add_weight_gradients(task, list(probes.values()), other, flipped.vector.unsqueeze(0), 1.0)
    return losses.detach()


class _Probe(NamedTuple):
    """A layer that was run, its input and its output."""

    layer: nn.Module
    inputs: Tensor
    output: Tensor


@torch.no_grad()
def _add_weight_gradients(
    task: Task, probes: Sequence[_Probe], deltas: Sequence[Tensor], rows: Tensor, share: float
) -> None:
    """Add to each row the weights' gradients from its part of the examples, times ``share``."""
    slots = dict(zip(map(id, task.flat.parameters), task.flat.views(rows), strict=True))
    # Under mixed precision activations have fewer bits than what is added up from them.
    with torch.autocast(rows.device.type, enabled=False):
        for (layer, x, _), delta in zip(probes, deltas, strict=True):
            own, pull = x.to(rows.dtype), delta.to(rows.dtype)
            if isinstance(layer, nn.Linear):
                _linear(layer, own, pull, len(rows), share, slots)
                continue
            assert isinstance(layer, nn.Conv2d | PooledConvolution)
            weights, biases = (slots.get(id(p)) for p in (layer.weight, layer.bias))
            if isinstance(layer, nn.Conv2d):
                _convolution.add_gradients(layer, own, pull, share, weights, biases)
            else:
                layer.add_gradients(own, pull, share, len(rows), weights, biases)


def _check_run(task: Task, probes: dict[nn.Module, _Probe]) -> None:
    """A layer whose weight is used without calling the layer would seem to have no gradient."""
    seen = {id(p) for layer in probes for p in layer.parameters(recurse=False)}
    if not all(id(p) in seen for p in task.flat.parameters):
        raise ValueError("a trained layer was not run: its gradient cannot be found; use loop")


@contextmanager
def _frozen(model: nn.Module) -> Iterator[None]:
    """Parameters that autograd leaves alone."""
    trained = [p for p in model.parameters() if p.requires_grad]
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)


@contextmanager
def _probes(model: nn.Module) -> Iterator[dict[nn.Module, _Probe]]:
    """Each layer's input and output, kept as the model runs."""
    kept: dict[nn.Module, _Probe] = {}

    def keep(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        own = layer.layer if isinstance(layer, PooledConvolution) else layer
        if own in kept:
            raise ValueError(f"{own} runs twice: its gradients cannot be told apart")
        if isinstance(layer, nn.Conv2d):
            output = _convolution.with_fast_backward(layer, inputs[0], output)
        if not output.requires_grad:
            output = output.detach().requires_grad_()
        kept[own] = _Probe(layer, inputs[0].detach(), output)
        return output

    kinds = (nn.Linear, nn.Conv2d, PooledConvolution)
    hooks = [m.register_forward_hook(keep) for m in model.modules() if isinstance(m, kinds)]
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()


def _linear(
    layer: nn.Linear,
    inputs: Tensor,
    delta: Tensor,
    workers: int,
    share: float,
    slots: dict[int, Tensor],
) -> None:
    inputs = inputs.reshape(workers, -1, layer.in_features)
    delta = delta.reshape(workers, -1, layer.out_features)
    if id(layer.weight) in slots:
        slots[id(layer.weight)].baddbmm_(delta.mT, inputs, alpha=share)
    if layer.bias is not None and id(layer.bias) in slots:
        slots[id(layer.bias)].add_(delta.sum(1), alpha=share)


def supports_joined(model: nn.Module) -> bool:
    """Whether every trained parameter sits in a layer that ``joined`` knows how to split."""
    known = {
        id(p)
        for module in model.modules()
        if type(module) in (nn.Linear, nn.Conv2d)  # a subclass may compute something else
        and not (isinstance(module, nn.Conv2d) and module.padding_mode != "zeros")
        and not isinstance(getattr(module, "padding", 0), str)
        for p in (module.weight, module.bias)
    }
    batch_norm = any(isinstance(module, BatchNorm) for module in model.modules())
    return not batch_norm and all(id(p) in known for p in model.parameters() if p.requires_grad)
