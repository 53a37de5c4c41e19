"""What the benchmarks share: options, progress, verdicts on goals, and the files they write."""

import argparse
import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lit_byz.benchmark import _byzfl
from lit_byz.benchmark._timing import machine
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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


def progress_bar() -> Progress:
    """A bar on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))


def print_verdicts(console: Console, goals: Mapping[str, bool]) -> None:
    """Print which goals were reached."""
    for goal, reached in goals.items():
        verdict = "[green]reached[/green]  " if reached else "[red]missed[/red]   "
        console.print(verdict + goal)


def write(
    folder: Path,
    name: str,
    rows: "Sequence[DataclassInstance]",
    goals: Mapping[str, bool],
    **more: Any,
) -> None:
    """The rows as ``name.csv``, and everything as ``name.json``."""
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
    (folder / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
