"""Run a whole attack grid and show the worst case of every cell.

python pipelines/sweep.py                                   the quickstart: digits, two minutes
python pipelines/sweep.py experiment=NAME seed=[1,2,3]      a grid of configs/experiment/, changed
python pipelines/sweep.py clip=[none,arc] attack=[sf,foe] dataset=mnist --dry-run

A list makes an axis of the grid, a single value removes one. The same command again goes on where
the last one stopped: finished runs are not computed twice.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING

from lit_byz.experiment.catalogue import catalogue
from lit_byz.experiment.cli import Parser, guarded

if TYPE_CHECKING:
    from lit_byz.experiment.executors import Executor
    from lit_byz.experiment.sweep import Sweep


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_intermixed_args(arguments)

    from lit_byz.experiment.grid import points, read_grid
    from lit_byz.experiment.sweep import make_sweep

    found = points(read_grid(options.settings, "quickstart"))
    executor = _executor(options)
    sweep = make_sweep(
        found, worst_case_only=options.worst_case_only, retry_failed=options.retry_failed
    )
    if options.dry_run:
        _show_plan(sweep, options)
        return 0
    _compute(sweep, executor, options)
    return _conclude(sweep, options)


def _parser() -> Parser:
    parser = Parser(__doc__ or "", catalogue)
    parser.add_argument("settings", nargs="*", metavar="key=value", help="see below")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and its cost, stop")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    parser.add_argument(
        "--executor", choices=("processes", "inline", "ray"), default="processes", help="where to"
    )
    parser.add_argument("--ray-address", help="of a Ray cluster; default: one on this machine")
    parser.add_argument("--retry-failed", action="store_true", help="compute failed runs again")
    parser.add_argument(
        "--worst-case-only",
        action="store_true",
        help="stop runs that cannot lower the worst case any more",
    )
    parser.add_argument("--progress", choices=("auto", "live", "plain", "none"), default="auto")
    parser.add_argument("--json", action="store_true", help="print the results as JSON, no table")
    parser.add_argument("--out", default="outputs", help="folder for the figure and the CSV file")
    return parser


def _executor(options: argparse.Namespace) -> "Executor":
    import os

    from lit_byz.errors import BadRequest
    from lit_byz.experiment.executors import InProcess, LocalProcesses, RayTasks

    if options.workers is not None and options.workers < 1:
        raise BadRequest(f"--workers {options.workers}: must be at least 1")
    if options.executor == "inline":
        return InProcess()
    if options.executor == "ray":
        return RayTasks(options.ray_address)
    return LocalProcesses(options.workers or len(os.sched_getaffinity(0)))


def _show_plan(sweep: "Sweep", options: argparse.Namespace) -> None:
    from lit_byz.experiment.estimate import estimate

    cells = len({point.cell for point in sweep.points})
    attacks = len({point.attack for point in sweep.points})
    seeds = len({point.seed for point in sweep.points})
    print(f"{len(sweep.points)} runs: {cells} cells, {attacks} attacks, {seeds} seeds")
    waiting = [point for index, point in enumerate(sweep.points) if index not in sweep.outcomes]
    print(f"already done: {len(sweep.points) - len(waiting)}, to do: {len(waiting)}")
    if waiting:
        cost = estimate(waiting)
        hours = cost.seconds / 3600
        shown = f"{hours:.1f} h" if hours > 1.5 else f"{cost.seconds / 60:.1f} min"
        print(f"estimated from a few measured steps: {shown} of one process as this one, ", end="")
        print(f"{cost.bytes / 1e6:.0f} MB in the store")


def _compute(sweep: "Sweep", executor: "Executor", options: argparse.Namespace) -> None:
    from rich.console import Console

    from lit_byz.experiment import watch

    console = Console(stderr=True)
    kind = options.progress
    if kind == "auto":
        kind = "live" if console.is_terminal else "plain"
    watcher: watch.Watcher = watch.Silent()
    if kind == "live":
        watcher = watch.LiveView(console)
    elif kind == "plain":
        watcher = watch.PlainLines(console)
    before = signal.getsignal(signal.SIGINT)

    def interrupted(number: int, frame: FrameType | None) -> None:
        if sweep.stopping:
            raise KeyboardInterrupt
        sweep.stopping = True
        console.print("stopping: the runs that are on save themselves; Ctrl-C again stops at once")

    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, interrupted)
    try:
        if sweep.pending:
            sweep.compute(executor, watcher)
    finally:
        watcher.close()
        signal.signal(signal.SIGINT, before)


def _conclude(sweep: "Sweep", options: argparse.Namespace) -> int:
    from lit_byz.experiment.conclusion import conclude

    return conclude(sweep, options.out, as_json=options.json)


if __name__ == "__main__":
    sys.exit(guarded(main))
