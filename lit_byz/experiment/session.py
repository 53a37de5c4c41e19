"""What the commands that compute many runs share: their options, executor, progress and Ctrl-C."""

import argparse
import os
import signal
from types import FrameType

from rich.console import Console

from lit_byz.errors import BadRequest
from lit_byz.experiment import watch
from lit_byz.experiment.executors import Executor, InProcess, LocalProcesses, RayTasks
from lit_byz.experiment.sweep import Sweep

HEARD = (signal.SIGINT, signal.SIGTERM)


def make_executor(options: argparse.Namespace) -> Executor:
    """Where the runs are computed, as the options say."""
    if options.workers is not None and options.workers < 1:
        raise BadRequest(f"--workers {options.workers}: must be at least 1")
    if options.executor == "inline":
        return InProcess()
    if options.executor == "ray":
        return RayTasks(options.ray_address, options.workers)
    processes = LocalProcesses(options.workers or len(os.sched_getaffinity(0)))
    if not options.dry_run:
        processes.get_ready()
    return processes


def compute(sweep: Sweep, executor: Executor, progress: str) -> None:
    """Compute what is missing, show how it goes, and stop cleanly at the first Ctrl-C."""
    console = Console(stderr=True)
    watcher = _watcher(progress, console)

    def interrupted(number: int, frame: FrameType | None) -> None:
        if sweep.stopping:
            raise KeyboardInterrupt
        sweep.stopping = True
        console.print("stopping: the runs that are on save themselves; Ctrl-C again stops at once")

    before = {number: signal.signal(number, interrupted) for number in HEARD}
    try:
        sweep.compute(executor, watcher)
        if isinstance(executor, InProcess) and sweep.interrupted:
            sweep.stopping = True  # the run itself took the signal, for all of us
    finally:
        watcher.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _watcher(progress: str, console: Console) -> watch.Watcher:
    if progress == "auto":
        progress = "live" if console.is_terminal else "plain"
    if progress == "live":
        return watch.LiveView(console)
    return watch.PlainLines(console) if progress == "plain" else watch.Silent()
