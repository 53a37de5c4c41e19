"""The methods of computing per-worker gradients, timed for every registered model.

The choice of a method must not depend on a clock, so what is measured here is written into a table
once (``--write``), and the table is what training follows.
"""

import argparse
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import yaml
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from lit_byz._streams import Stream, torch_generator
from lit_byz._threads import threads
from lit_byz.benchmark import _harness
from lit_byz.benchmark._progress import Cases
from lit_byz.benchmark._timing import machine, take_turns
from lit_byz.errors import BadRequest
from lit_byz.models import MODELS, initialise
from lit_byz.training import gradient_methods
from lit_byz.training.gradients import (
    METHODS,
    FlatParameters,
    Task,
    WorkerLayers,
    replace_dropout,
    supports_joined,
)

DESCRIPTION = "Time the methods of computing per-worker gradients; --write refreshes the defaults."

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)
# Images, honest workers and batch size as in the paper, but for the number of workers of the large
# models: each one more takes as long as the last, and all of them would take minutes.
CASES: dict[str, tuple[tuple[int, int, int], int, int]] = {
    "cnn_cifar": (CIFAR, 4, 50),
    "cnn_mnist": (MNIST, 10, 25),
    "logreg": (MNIST, 10, 25),
    "mlp": (MNIST, 10, 25),
    "resnet18": (CIFAR, 2, 50),
}
QUICK_BATCH = 4
THREADS = (1, 2)
# The table's method may take so many times as long as the fastest one.
SLACK = 1.25

HEADER = """\
# How per-worker gradients are computed by default, by model and device. An entry without times has
# not been measured: it is what any model gets that is not listed.
# Milliseconds of a step's gradients, with 1 thread and with 2, for h workers with b examples each;
# ratios count, as the machine may have had other work.
# Measured and rewritten by: python pipelines/benchmark.py gradients --write
"""


@dataclass(frozen=True)
class Row:
    """One method for one model: the shortest of its times for a step's gradients, in seconds."""

    model: str
    honest: int
    batch_size: int
    threads: int
    method: str
    seconds: float
    over_fastest: float
    """As a ratio to the fastest method with as many threads."""
    default: bool


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    quick = f"{QUICK_BATCH} examples for each worker, fewer repeats"
    _harness.add_options(parser, list(CASES), quick=quick, repeats=15, threads=False)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="(cpu)")
    parser.add_argument("--write", action="store_true", help="enter what is measured in the table")


def run(parsed: argparse.Namespace) -> int:
    """Measure, write the files, print the tables."""
    names = _harness.chosen(parsed, list(CASES))
    if parsed.write and parsed.quick:
        raise BadRequest("--write: only a full run may decide the defaults; leave out --quick")
    if parsed.device == "cuda" and not torch.cuda.is_available():
        raise BadRequest("--device cuda: torch finds no such device here")
    repeats, budget = (2, 0.0) if parsed.quick else (parsed.repeats, 60.0)
    rows: list[Row] = []
    with Cases(len(names)) as told:
        for name in names:
            shape, honest, size = CASES[name]
            batch_size = QUICK_BATCH if parsed.quick else size
            told.begin(f"{name}, {honest} x {batch_size} images")
            rows += _measure(name, shape, honest, batch_size, parsed.device, repeats, budget)
            told.end()
            _harness.write(parsed.out, "gradients", rows, goals(rows))
    console = Console()
    _print(console, rows)
    if parsed.write:
        write_table(rows, parsed.device)
        console.print(f"wrote {os.path.relpath(gradient_methods.TABLE)}")
    return 0


def _measure(
    name: str,
    shape: Sequence[int],
    honest: int,
    batch_size: int,
    device: str,
    repeats: int,
    budget: float,
) -> list[Row]:
    """All methods that can do a model, with each number of threads, in turns."""
    model = initialise(lambda: MODELS[name](shape=shape, classes=10), seed=0)
    replace_dropout(model)
    model.to(device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    draw = torch_generator(0, Stream.BENCHMARKS)
    x = torch.randn(honest, batch_size, *shape, generator=draw).to(device)
    y = torch.randint(10, (honest, batch_size), generator=draw).to(device)
    task = Task(
        model, nn.functional.cross_entropy, FlatParameters(model), WorkerLayers(model, x[0, :1])
    )
    rows = x.new_zeros(honest, task.flat.size)
    buffers = task.layers.buffers(0, 0, honest, batch_size)

    def step(count: int, method: str) -> Callable[[Tensor], None]:
        def gradients(images: Tensor) -> None:
            with threads(count):
                METHODS[method](task, rows, 0.1, images, y, buffers)
                if images.is_cuda:
                    torch.cuda.synchronize()

        return gradients

    methods = [m for m in METHODS if m != "joined" or supports_joined(model)]
    steps = {f"{m} {count}": step(count, m) for count in THREADS for m in methods}
    timed = take_turns(steps, x, repeats=repeats, budget=budget)
    default = gradient_methods.default_method(name, model, x[0], device=device, simple=True)
    found = []
    for count in THREADS:
        # The shortest, as whatever else the machine does can only add.
        seconds = {m: min(timed.seconds[f"{m} {count}"]) for m in methods}
        fastest = min(seconds.values())
        found += [
            Row(name, honest, batch_size, count, m, taken, taken / fastest, m == default)
            for m, taken in seconds.items()
        ]
    return found


def goals(rows: list[Row]) -> dict[str, bool]:
    """Whether what the table says is still right."""
    return {
        f"{row.model}, {row.threads} thread{'s' * (row.threads > 1)}: "
        f"{row.method} takes at most {SLACK:g}× the fastest": row.over_fastest <= SLACK
        for row in rows
        if row.default
    }


def write_table(rows: list[Row], device: str) -> None:
    """Enter times and defaults for a device."""
    table: dict[str, dict[str, dict[str, Any]]] = {
        name: dict(gradient_methods.table().get(name, {})) for name in MODELS
    }
    for model in dict.fromkeys(row.model for row in rows):
        own = [row for row in rows if row.model == model]
        methods = dict.fromkeys(row.method for row in own)
        table[model][device] = {
            "method": _best(own),
            "h, b": [own[0].honest, own[0].batch_size],
            **{m: [round(1e3 * r.seconds, 2) for r in own if r.method == m] for m in methods},
        }
    body = yaml.safe_dump(table, default_flow_style=None, sort_keys=False, width=100)
    gradient_methods.TABLE.write_text(f"{HEADER}# On: {machine()['processor']}\n{body}")
    gradient_methods.table.cache_clear()


def _best(rows: list[Row]) -> str:
    """The fastest method over all numbers of threads.

    The default stays if it is not much slower: another one makes other runs of the same settings.
    """
    ratios: dict[str, list[float]] = {}
    for row in rows:
        ratios.setdefault(row.method, []).append(row.over_fastest)
    over = {method: statistics.geometric_mean(r) for method, r in ratios.items()}
    fastest = min(over, key=over.__getitem__)
    default = next((row.method for row in rows if row.default), fastest)
    return default if over[default] <= SLACK * over[fastest] else fastest


def _print(console: Console, rows: list[Row]) -> None:
    table = Table(title="gradients of one step, in ms")
    for heading in ("model", "h × b", "threads"):
        table.add_column(heading)
    for method in METHODS:
        table.add_column(method, justify="right")
    table.add_column("default / fastest", justify="right")
    for key in dict.fromkeys((row.model, row.threads) for row in rows):
        own = {row.method: row for row in rows if (row.model, row.threads) == key}
        one = next(iter(own.values()))
        times = [f"{1e3 * own[m].seconds:.2f}" if m in own else "" for m in METHODS]
        default = next(row for row in own.values() if row.default)
        ratio = f"{default.method} {default.over_fastest:.2f}×"
        table.add_row(one.model, f"{one.honest} × {one.batch_size}", str(key[1]), *times, ratio)
    console.print(table)
    _harness.print_verdicts(console, goals(rows))
