"""What a person, or a program, sees of a sweep while it goes on."""

import time
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lit_byz.experiment.sweep import Sweep
from lit_byz.experiment.tasks import Outcome, Progress


class Watcher(Protocol):
    def __call__(self, sweep: Sweep, message: Progress | Outcome | None) -> None: ...

    def close(self) -> None: ...


class Silent:
    """Nothing."""

    def __call__(self, sweep: Sweep, message: Progress | Outcome | None) -> None:
        return

    def close(self) -> None:
        return


class PlainLines:
    """One line for every run that ends."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.begin = time.monotonic()

    def __call__(self, sweep: Sweep, message: Progress | Outcome | None) -> None:
        if isinstance(message, Outcome):
            label = sweep.points[message.index].label
            line = f"{_counts(sweep)}  {label}: {describe(message)}  {_left(sweep, self.begin)}"
            self.console.print(line, highlight=False, soft_wrap=True)

    def close(self) -> None:
        return


class LiveView:
    """Counts, the runs that are on with their accuracies, and the time left."""

    def __init__(self, console: Console) -> None:
        self.begin = time.monotonic()
        self.live = Live(console=console, refresh_per_second=4, transient=True)
        self.live.start()

    def __call__(self, sweep: Sweep, message: Progress | Outcome | None) -> None:
        rows = Table.grid(padding=(0, 2))
        for index, progress in list(sweep.running.items()):
            bar = ProgressBar(total=progress.steps, completed=progress.step, width=24)
            state = f"{progress.step}/{progress.steps}  max {100 * progress.max_accuracy:.1f} %"
            rows.add_row(bar, state, sweep.points[index].label)
        head = Text(f"{_counts(sweep)}  {_left(sweep, self.begin)}", style="bold")
        self.live.update(Group(head, rows))

    def close(self) -> None:
        self.live.stop()


def describe(outcome: Outcome) -> str:
    """An outcome in a few words."""
    if outcome.status in ("failed", "interrupted"):
        return f"{outcome.status}{f' ({outcome.error})' if outcome.error else ''}"
    best = f"{100 * (outcome.max_accuracy or 0):.1f} %"
    if outcome.status == "bounded":
        return f"at least {best}, stopped after {outcome.steps_done} steps"
    suffix = "" if outcome.status == "finished" else f", {outcome.status}"
    return f"{best}{suffix} in {outcome.seconds:.0f} s"


def _counts(sweep: Sweep) -> str:
    done = len(sweep.outcomes) - len(sweep.failed)
    failed = f", {len(sweep.failed)} failed" if sweep.failed else ""
    needed = len(sweep.points) - len(sweep.dropped)
    return f"{done}/{needed} runs done, {len(sweep.running)} running{failed}"


def _left(sweep: Sweep, begin: float) -> str:
    """Time left, from the steps that were computed since the beginning."""
    done = sum(outcome.steps_done for outcome in sweep.computed)
    done += sum(progress.step for progress in sweep.running.values())
    left = sum(progress.steps - progress.step for progress in sweep.running.values())
    left += sum(
        int(point.config.train.steps)
        for index, point in enumerate(sweep.points)
        if not (index in sweep.outcomes or index in sweep.running or index in sweep.dropped)
    )
    if not done or not left:
        return ""
    seconds = (time.monotonic() - begin) * left / done
    return f"about {_duration(seconds)} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
