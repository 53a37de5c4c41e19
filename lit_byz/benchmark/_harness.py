"""What the benchmarks share: options, verdicts on goals, and the files they write."""

import argparse
import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console

from lit_byz.benchmark import _byzfl
from lit_byz.benchmark._ratio import MISSED, REACHED, UNDECIDED
from lit_byz.benchmark._timing import machine
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from lightning.pytorch.callbacks import Callback

WIDTH = 180  # of tables in a file or on a pipe
COLOURS = {REACHED: "green", MISSED: "red", UNDECIDED: "yellow"}


def add_options(
    parser: argparse.ArgumentParser,
    names: Sequence[str],
    *,
    quick: str,
    repeats: int,
    threads: bool = True,
) -> None:
    """The options of all benchmarks; ``threads`` says that the number of threads is one of them."""
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, default=Path("outputs", "benchmark"), help="folder")
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"some of {', '.join(names)}")
    parser.add_argument("--repeats", type=int, default=repeats, help=f"of ours ({repeats})")
    parser.set_defaults(threads=None)
    if threads:
        both = "threads for both libraries (torch's default)"
        parser.add_argument("--threads", type=int, help=both)


def chosen(parsed: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """The names that were asked for, all of them by default; and the threads are set."""
    for name in parsed.only or []:
        if name not in names:
            raise BadRequest(f"--only: unknown name '{name}': {nearest(name, names)}")
    if parsed.repeats < 2:
        raise BadRequest(f"--repeats {parsed.repeats}: must be at least 2")
    if parsed.threads is not None:
        if parsed.threads < 1:
            raise BadRequest(f"--threads {parsed.threads}: must be at least 1")
        torch.set_num_threads(parsed.threads)
    return [name for name in names if parsed.only is None or name in parsed.only]


def train_to_the_end(settings: Sequence[str], callbacks: "Sequence[Callback]" = ()) -> None:
    """Train once; a signal that ends the run early ends the benchmark: its time means nothing."""
    from lit_byz import train

    if train(settings, callbacks=callbacks).status == "interrupted":
        raise KeyboardInterrupt


def wide_console() -> Console:
    """Standard output; where that is no terminal, tables are as wide as they need to be."""
    return Console() if Console().is_terminal else Console(width=WIDTH)


def print_verdicts(console: Console, goals: Mapping[str, bool | str]) -> None:
    """Print which goals were reached, as far as it can be told."""
    for goal, found in goals.items():
        verdict = found if isinstance(found, str) else REACHED if found else MISSED
        word, _, spread = verdict.partition(":")
        text = f"[{COLOURS[word]}]{word:<9}[/{COLOURS[word]}] {goal}"
        console.print(f"{text}:{spread}" if spread else text, highlight=False, soft_wrap=True)


def write(
    folder: Path,
    name: str,
    rows: "Sequence[DataclassInstance]",
    goals: Mapping[str, bool | str],
    **more: Any,
) -> None:
    """The rows as ``name.csv``, and everything as ``name.json``.

    Called after every case, so that an interrupted benchmark leaves what it has measured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if rows:
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(asdict(rows[0])))
            writer.writeheader()
            writer.writerows(asdict(row) for row in rows)
    content = {
        "machine": machine(),
        "byzfl": _byzfl.VERSION,
        "goals": dict(goals),
        "rows": [asdict(row) for row in rows],
        **more,
    }
    part = folder / f"{name}.json.part"
    part.write_text(json.dumps(content, indent=2) + "\n")
    part.replace(folder / f"{name}.json")
