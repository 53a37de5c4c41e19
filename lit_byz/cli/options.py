"""The options of commands that compute many runs, and the executor that they ask for.

Light to import, so that the processes begin with their own imports as soon as a command starts.
"""

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from lit_byz.cli.command import out_folder
from lit_byz.errors import BadRequest
from lit_byz.execution.executor import Executor, Inline

if TYPE_CHECKING:
    from lit_byz.execution.runner import Runner
    from lit_byz.tracking.records import StudyResult

# Takes what a study has come to in place of a terminal.
Receive = Callable[["StudyResult", "Runner"], None]


def add_options(parser: argparse.ArgumentParser, *, worst_case_only: bool = False) -> None:
    """Add the options of a command that computes many runs.

    ``worst_case_only`` is for a command that asks for worst cases alone: it may stop runs early.
    """
    parser.add_argument("settings", nargs="*", metavar="key=value", help="see below")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and its cost, stop")
    parser.add_argument(
        "--print-config",
        action="store_true",
        help="print what config= reads back, and stop",
    )
    parser.add_argument("--workers", type=int, help="runs at once; default: one per core")
    parser.add_argument(
        "--executor", choices=("processes", "inline", "ray"), default="processes", help="where to"
    )
    parser.add_argument("--ray-address", help="of a Ray cluster; default: one on this machine")
    parser.add_argument("--retry-failed", action="store_true", help="compute failed runs again")
    parser.add_argument("--progress", choices=("auto", "live", "plain", "none"), default="auto")
    parser.add_argument("--json", action="store_true", help="print the results as JSON, no table")
    parser.add_argument(
        "--out", type=out_folder, help="folder for figures and tables; default: outputs/STUDY"
    )
    if worst_case_only:
        parser.add_argument(
            "--worst-case-only",
            action="store_true",
            help="stop runs that cannot lower the worst case any more",
        )


def processes(options: argparse.Namespace) -> int:
    """How many runs the options ask for at once, on this machine."""
    if options.executor == "inline":
        return 1
    return int(options.workers or len(os.sched_getaffinity(0)))


def make_executor(options: argparse.Namespace) -> Executor:
    """Where the runs are computed, as the options say."""
    from lit_byz.execution.processes import LocalProcesses
    from lit_byz.execution.ray_tasks import RayTasks

    if options.workers is not None and options.workers < 1:
        raise BadRequest(f"--workers {options.workers}: must be at least 1")
    if options.executor == "inline":
        return Inline()
    if options.executor == "ray":
        return RayTasks(options.ray_address, options.workers)
    made = LocalProcesses(processes(options))
    if _will_compute(options):
        made.get_ready()  # they import while this process reads the grid and makes the store
    return made


def _will_compute(options: argparse.Namespace) -> bool:
    """Whether it is known at once that there are runs to compute: in a store that is yet to be."""
    from lit_byz.tracking.store import store_is_there

    if options.dry_run or options.print_config:
        return False
    named = [word for word in options.settings if word.startswith("tracking.uri=")]
    try:
        return not store_is_there(named[-1].partition("=")[2] if named else None)
    except OSError:  # no name that a file can have: whoever opens the store says so
        return False
