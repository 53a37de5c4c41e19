"""Which method computes a model's per-worker gradients where none is asked for.

Methods differ in the last bits, so the choice is part of what a run is: it follows from the model
and the device alone, never from a clock. For the registered models it stands in a table of
measured times; any other model takes ``joined`` where that gives what ``loop`` gives. (``vmap`` is
up to twice as fast for small networks of linear layers and norms, and up to four times as slow for
those with convolutions.)

>>> from lit_byz.models import MODELS
>>> model, example = MODELS["cnn_mnist"](), torch.zeros(1, 1, 28, 28)
>>> default_method("cnn_mnist", model, example, device="cpu", simple=True)
'joined'
"""

import copy
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor, nn

from lit_byz._streams import Stream, torch_generator
from lit_byz.errors import BadRequest
from lit_byz.training._flat import FlatParameters
from lit_byz.training._joined import supports_joined
from lit_byz.training._stochastic import WorkerLayers, replace_dropout
from lit_byz.training._task import Task
from lit_byz.training.gradients import METHODS

TABLE = Path(__file__).with_suffix(".yaml")
# Two methods agree if their gradients differ by less than this, relatively.
AGREEMENT = 1e-3
# The workers of a trial, and each one's examples.
WORKERS, EXAMPLES = 2, 3


@functools.cache
def table() -> dict[str, dict[str, dict[str, Any]]]:
    """What is known: model, device, and there the ``method`` and the times that speak for it."""
    known: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(TABLE.read_text())
    return known


def default_method(
    name: str, model: nn.Module, example: Tensor, *, device: str, simple: bool
) -> str:
    """The method for a model on a device (``cpu``, ``cuda``, …), always the same.

    ``name`` is the model's registered name or dotted path, ``example`` some images (N, C, H, W), of
    which only the shape counts. ``simple`` says that a step is one gradient on one batch for each
    worker; for all else there is only ``loop``. The model and the random numbers stay as they are.
    """
    known = known_method(name, device=device, simple=simple)
    if known is not None:
        return known
    return "joined" if _try("joined", model, example).agrees else "loop"


def known_method(name: str, *, device: str, simple: bool) -> str | None:
    """The same without a look at the model; None where that is needed."""
    if not simple:
        return "loop"
    known = table().get(name, {}).get(torch.device(device).type)
    return None if known is None else str(known["method"])


def check_method(method: str, model: nn.Module, example: Tensor) -> None:
    """Refuse a method that cannot work for a model."""
    complaint = None if method == "loop" else _try(method, model, example).complaint
    if complaint is not None:
        raise BadRequest(f"train.gradients = {method}: {complaint}; use auto or loop")


@dataclass(frozen=True)
class _Trial:
    """What came of trying a method: it gives the loop's gradients, it cannot work, or neither."""

    agrees: bool = False
    complaint: str | None = None


def _try(method: str, model: nn.Module, example: Tensor) -> _Trial:
    """Compare a method with the loop on a copy of the model and a small batch."""
    if method == "joined" and not supports_joined(model):
        return _Trial(complaint="takes models of Linear and Conv2d layers without batch norm")
    with torch.random.fork_rng(devices=[]):
        try:
            task, x = _rehearsal(model, example)
            before = torch.get_rng_state()
            expected = _gradients("loop", task, x)
            draws = not torch.equal(before, torch.get_rng_state())
        except Exception:
            # Whatever is wrong with the model or these images: training itself will tell.
            return _Trial()
        try:
            found = _gradients(method, task, x)
        except (RuntimeError, ValueError) as error:
            return _Trial(complaint=str(error).partition("\n")[0])
    if draws or not bool(expected.isfinite().all()):
        return _Trial()  # with other draws come other gradients: nothing can be compared
    apart = (found - expected).norm(dim=1)
    if bool((apart <= AGREEMENT * expected.norm(dim=1).max()).all()):
        return _Trial(agrees=True)
    return _Trial(complaint="gives other gradients than loop for this model")


def _rehearsal(model: nn.Module, example: Tensor) -> tuple[Task, Tensor]:
    """A copy of the model, and images for it.

    Trained parameters get values of their own, so that nothing depends on the initial ones: with
    some that are zero, or enormous, gradients would agree or differ for no good reason.
    """
    dtype = torch.promote_types(next(model.parameters()).dtype, torch.float32)
    own = copy.deepcopy(model).to("cpu", dtype).train()
    replace_dropout(own)
    draw = torch_generator(0, Stream.PROBES)
    flat = FlatParameters(own)
    with torch.no_grad():
        for p in flat.parameters:
            inputs = p[0].numel() if p.dim() > 1 else 1
            p.normal_(std=inputs**-0.5, generator=draw)
    x = torch.randn(WORKERS, EXAMPLES, *example.shape[1:], dtype=dtype, generator=draw)
    return Task(own, nn.functional.cross_entropy, flat, WorkerLayers(own, x[0])), x


def _gradients(method: str, task: Task, x: Tensor) -> Tensor:
    rows = x.new_zeros(len(x), task.flat.size)
    y = torch.arange(WORKERS * EXAMPLES).view(WORKERS, EXAMPLES) % 2  # classes that any model has
    METHODS[method](task, rows, 1.0, x, y, task.layers.buffers(0, 0, *y.shape))
    return rows
