"""What a person, or a program, sees of a study while it goes on."""

import time
from typing import Protocol, runtime_checkable

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lit_byz.execution.runner import Runner
from lit_byz.execution.tasks import Progress
from lit_byz.tracking.outcome import Outcome


@runtime_checkable
class Growing(Protocol):
    """A strategy that adds runs to its board when earlier ones have decided which."""

    def most_to_come(self) -> tuple[int, int]:
        """How many runs may be added at most, and their steps."""
        ...


class Watcher(Protocol):
    """Hears of every message of a runner."""

    def __call__(self, runner: Runner, message: Progress | Outcome | None) -> None: ...

    def close(self) -> None: ...


class Silent:
    """Nothing."""

    def __call__(self, runner: Runner, message: Progress | Outcome | None) -> None:
        return

    def close(self) -> None:
        return


class Pace:
    """The time left, from the steps that were computed since the first of them began."""

    def __init__(self) -> None:
        self._begin = time.monotonic()

    def __call__(self, runner: Runner) -> str:
        done = sum(outcome.steps_done for outcome in runner.computed)
        done += sum(progress.step for progress in runner.running.values())
        left = sum(progress.steps - progress.step for progress in runner.running.values())
        left += sum({point.identity: point.steps for point in runner.board.ready}.values())
        runs, steps = _most_to_come(runner)
        left += steps
        if not done:
            self._begin = time.monotonic()
        if not done or not left or runner.stopping:
            return ""
        seconds = (time.monotonic() - self._begin) * left / done
        return f"{'at most' if runs else 'about'} {_duration(seconds)} left"


class PlainLines:
    """One line for every run that ends."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.pace = Pace()

    def __call__(self, runner: Runner, message: Progress | Outcome | None) -> None:
        _print_note(self.console, runner, message)
        left = self.pace(runner)
        if isinstance(message, Outcome):
            told = describe(message, runner.board.judged_on)
            line = f"{_counts(runner)}  {_label(runner, message.identity)}: {told}  {left}"
            self.console.print(line, highlight=False, soft_wrap=True, markup=False)

    def close(self) -> None:
        return


class LiveView:
    """Counts, the runs that are on with their accuracies, and the time left."""

    def __init__(self, console: Console) -> None:
        self.pace = Pace()
        self.live = Live(console=console, refresh_per_second=4, transient=True)
        self.live.start()

    def __call__(self, runner: Runner, message: Progress | Outcome | None) -> None:
        _print_note(self.live.console, runner, message)
        rows = Table.grid(padding=(0, 2))
        for identity, progress in list(runner.running.items()):
            bar = ProgressBar(total=progress.steps, completed=progress.step, width=24)
            best = _accuracy(progress.max_accuracy, runner.board.judged_on)
            state = f"{progress.step}/{progress.steps}  max {best}"
            rows.add_row(bar, state, Text(_label(runner, identity)))
        head = Text(f"{_counts(runner)}  {self.pace(runner)}", style="bold")
        self.live.update(Group(head, rows))

    def close(self) -> None:
        self.live.stop()


def make_watcher(progress: str, console: Console) -> Watcher:
    """The watcher that ``--progress`` asks for."""
    if progress == "auto":
        progress = "live" if console.is_terminal else "plain"
    if progress == "live":
        return LiveView(console)
    return PlainLines(console) if progress == "plain" else Silent()


def describe(outcome: Outcome, judged_on: str = "test") -> str:
    """An outcome in a few words, with its accuracy on the images that count."""
    if outcome.status in ("failed", "interrupted"):
        return f"{outcome.status}{f' ({outcome.error})' if outcome.error else ''}"
    best = _accuracy(outcome.judged_on(judged_on).max_accuracy or 0.0, judged_on)
    if outcome.status == "bounded":
        return f"at least {best}, stopped after {outcome.steps_done} steps"
    suffix = "" if outcome.status == "finished" else f", {outcome.status}"
    return f"{best}{suffix} in {outcome.seconds:.0f} s"


def _accuracy(value: float, judged_on: str) -> str:
    return f"{100 * value:.1f} %{' held out' if judged_on == 'val' else ''}"


def _print_note(console: Console, runner: Runner, message: Progress | Outcome | None) -> None:
    """What a run has to tell, above everything that moves."""
    if isinstance(message, Progress) and message.note:
        text = f"{_label(runner, message.identity)}: {message.note}"
        console.print(Text(text), highlight=False, soft_wrap=True)


def _label(runner: Runner, identity: str) -> str:
    found = (point for point in runner.board.points if point.identity == identity)
    return next(found).label


def _counts(runner: Runner) -> str:
    board = runner.board
    failed = f", {len(board.failed)} failed" if board.failed else ""
    done = sum(o.has_result for o in board.outcomes.values())
    more, _ = _most_to_come(runner)
    needed = len(board.points) - len(board.dropped) + more
    share = f"{done} of at most {needed}" if more else f"{done}/{needed}"
    return f"{share} runs done, {len(runner.running)} running{failed}"


def _most_to_come(runner: Runner) -> tuple[int, int]:
    strategy = runner.strategy
    return strategy.most_to_come() if isinstance(strategy, Growing) else (0, 0)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
