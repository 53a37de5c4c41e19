"""Per-worker gradients of all honest workers, computed in the way that is fastest here.

All ways give the same numbers up to rounding. Which is fastest depends on the model and on the
machine, so it is measured once for both and remembered.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from lit_byz import _native
from lit_byz._cache import cache_folder
from lit_byz.training import _convolution
from lit_byz.training._flat import FlatParameters
from lit_byz.training._stochastic import BatchNorm, WorkerLayers

Loss = Callable[[Tensor, Tensor], Tensor]

# One pass of the loop that takes this long keeps the machine busy by itself: nothing to gain.
LONG_ENOUGH = 1.0
# Two ways agree if their gradients differ by less than this, relatively.
AGREEMENT = 1e-3
ROUNDS = 3


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
class Also:
    """Other labels (h, b) for the same images, whose mean gradient is added to ``vector`` (d,)."""

    labels: Tensor
    vector: Tensor


class Way(Protocol):
    """Adds (1 − β) g_i to row i of the momentums, already scaled by β, and returns the losses."""

    def __call__(
        self,
        task: Task,
        rows: Tensor,
        share: float,
        x: Tensor,
        y: Tensor,
        buffers: dict[str, Tensor],
        also: Also | None = None,
    ) -> Tensor: ...


def loop(
    task: Task,
    rows: Tensor,
    share: float,
    x: Tensor,
    y: Tensor,
    buffers: dict[str, Tensor],
    also: Also | None = None,
) -> Tensor:
    """One worker after the other; autograd adds straight into the rows."""
    losses = []
    for worker in range(len(x)):
        task.flat.attach(rows[worker])
        own = {name: value[worker] for name, value in buffers.items()}
        output = task.output(own, x[worker])
        loss = task.loss(output, y[worker])
        (share * loss).backward(retain_graph=also is not None)
        if also is not None:
            task.flat.attach(also.vector)
            (task.loss(output, also.labels[worker]) / len(x)).backward()
        losses.append(loss.detach())
    return torch.stack(losses)


def batched(
    task: Task,
    rows: Tensor,
    share: float,
    x: Tensor,
    y: Tensor,
    buffers: dict[str, Tensor],
    also: Also | None = None,
) -> Tensor:
    """All workers at once through ``torch.func.vmap``."""

    def one(p: Any, own: Any, images: Tensor, labels: Tensor) -> tuple[Tensor, Any]:
        loss = task.loss(task.call({**task.flat.named(p), **own}, images), labels)
        return loss, (loss, own)

    detached = [p.detach() for p in task.flat.parameters]
    ways = vmap(grad(one, has_aux=True), in_dims=(None, 0, 0, 0), randomness="different")
    gradients, (losses, after) = ways(detached, buffers, x, y)
    for view, gradient in zip(task.flat.views(rows), gradients, strict=True):
        view.add_(gradient.reshape(view.shape), alpha=share)
    for name, value in after.items():
        buffers[name].copy_(value)
    if also is not None:
        task.flat.attach(also.vector)
        for worker in range(len(x)):
            own = {name: value[worker] for name, value in buffers.items()}
            loss = task.loss(task.output(own, x[worker]), also.labels[worker])
            (loss / len(x)).backward()
    return losses.detach()


def joined(
    task: Task,
    rows: Tensor,
    share: float,
    x: Tensor,
    y: Tensor,
    buffers: dict[str, Tensor],
    also: Also | None = None,
) -> Tensor:
    """One forward and backward over all examples, and per worker only the weights' gradients.

    Gradients with respect to activations do not mix examples, so one pass serves all workers; a
    layer's weight gradient then comes from a worker's part of its inputs and output gradients.
    """
    workers = len(x)
    flat_buffers = {name: value.flatten(0, 1) for name, value in buffers.items()}
    with _frozen(task.model), _probes(task.model) as probes:
        output = task.output(flat_buffers, x.flatten(0, 1))
        losses = torch.stack(
            [task.loss(*part) for part in zip(output.chunk(workers), y, strict=True)]
        )
        _check_run(task, probes)
        layers = list(probes)
        places = [probes[layer][1] for layer in layers]
        deltas = torch.autograd.grad(losses.sum(), places, retain_graph=also is not None)
        if also is not None:
            other = torch.autograd.grad(task.loss(output, also.labels.flatten()), places)
    inputs = [probes[layer][0] for layer in layers]
    _add_weight_gradients(task, layers, inputs, deltas, rows, share)
    if also is not None:
        _add_weight_gradients(task, layers, inputs, other, also.vector.unsqueeze(0), 1.0)
    return losses.detach()


@torch.no_grad()
def _add_weight_gradients(
    task: Task,
    layers: Sequence[nn.Module],
    inputs: Sequence[Tensor],
    deltas: Sequence[Tensor],
    rows: Tensor,
    share: float,
) -> None:
    """Add to each row the weights' gradients from its part of the examples, times ``share``."""
    slots = dict(zip(map(id, task.flat.parameters), task.flat.views(rows), strict=True))
    for layer, x, delta in zip(layers, inputs, deltas, strict=True):
        if isinstance(layer, nn.Linear):
            _linear(layer, x, delta, len(rows), share, slots)
        elif isinstance(layer, nn.Conv2d):
            weights, biases = (slots.get(id(p)) for p in (layer.weight, layer.bias))
            _convolution.add_gradients(layer, x, delta, share, weights, biases)


def _check_run(task: Task, probes: dict[nn.Module, tuple[Tensor, Tensor]]) -> None:
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
def _probes(model: nn.Module) -> Iterator[dict[nn.Module, tuple[Tensor, Tensor]]]:
    """Each layer's input and output, kept as the model runs."""
    kept: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def keep(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        if layer in kept:
            raise ValueError(f"{layer} runs twice: its gradients cannot be told apart")
        if isinstance(layer, nn.Conv2d):
            output = _convolution.with_fast_backward(layer, inputs[0], output)
        if not output.requires_grad:
            output = output.detach().requires_grad_()
        kept[layer] = (inputs[0].detach(), output)
        return output

    layers = [module for module in model.modules() if isinstance(module, nn.Linear | nn.Conv2d)]
    hooks = [layer.register_forward_hook(keep) for layer in layers]
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


WAYS: dict[str, Way] = {"loop": loop, "joined": joined, "vmap": batched}


def supports_joined(task: Task) -> bool:
    """Whether every trained parameter sits in a layer that ``joined`` knows how to split."""
    known = {
        id(p)
        for module in task.model.modules()
        if type(module) in (nn.Linear, nn.Conv2d)  # a subclass may compute something else
        and not (isinstance(module, nn.Conv2d) and module.padding_mode != "zeros")
        and not isinstance(getattr(module, "padding", 0), str)
        for p in module.parameters(recurse=False)
    }
    batch_norm = any(isinstance(module, BatchNorm) for module in task.model.modules())
    return not batch_norm and all(id(p) in known for p in task.flat.parameters)


def choose(task: Task, x: Tensor, y: Tensor, buffers: dict[str, Tensor]) -> str:
    """The fastest way for this model, these batches and this machine; measured once, then known."""
    key = _key(task, x)
    memory = cache_folder("gradients") / f"{key}.json"
    try:
        known = str(json.loads(memory.read_text())["way"])
        if known in WAYS:
            return known
    except (OSError, ValueError, KeyError, TypeError):
        pass
    seconds = _measure(task, x, y, buffers)
    best = min(seconds, key=seconds.__getitem__)
    new = memory.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps({"way": best, "seconds": seconds}))
    new.replace(memory)
    return best


def _measure(task: Task, x: Tensor, y: Tensor, buffers: dict[str, Tensor]) -> dict[str, float]:
    """Seconds of each way that gives what the loop gives."""
    first, expected = _pass("loop", task, x, y, buffers)
    if first > LONG_ENOUGH:
        return {"loop": first}
    seconds = {"loop": float("inf")}
    for name in ("joined", "vmap"):
        if name == "joined" and not supports_joined(task):
            continue
        try:
            _, rows = _pass(name, task, x, y, buffers)
        except (RuntimeError, ValueError):
            continue  # a model that this way cannot differentiate
        apart = (rows - expected).norm(dim=1)
        # Not so where examples depend on each other, or a layer draws random numbers on its own.
        if bool((apart <= AGREEMENT * expected.norm(dim=1).max()).all()):
            seconds[name] = float("inf")
    # In turns, so that a moment in which the machine is busy with other things hits all of them.
    for _ in range(ROUNDS):
        for name, shortest in list(seconds.items()):
            seconds[name] = min(shortest, _pass(name, task, x, y, buffers)[0])
    return seconds


def _pass(
    name: str, task: Task, x: Tensor, y: Tensor, buffers: dict[str, Tensor]
) -> tuple[float, Tensor]:
    """Seconds of one pass, and the gradients."""
    rows = torch.zeros(len(x), task.flat.size, dtype=x.dtype, device=x.device)
    copies = {name: value.clone() for name, value in buffers.items()}
    begin = time.perf_counter()
    WAYS[name](task, rows, 1.0, x, y, copies)
    if x.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - begin, rows


def _key(task: Task, x: Tensor) -> str:
    described = (
        str(task.model),
        [p.stride() for p in task.flat.parameters],
        tuple(x.shape),
        str(x.dtype),
        str(x.device),
        torch.get_num_threads(),
        torch.__version__,
        os.cpu_count(),
        _native.library() is None,
    )
    return hashlib.sha256(repr(described).encode()).hexdigest()[:20]
