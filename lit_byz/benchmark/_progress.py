"""What a benchmark says while it runs: a bar on a terminal, lines anywhere else."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)


class Cases:
    """Says on standard error which of so many cases is being measured, and what came of it.

    On a terminal that is one moving line; on a pipe or in a file every case has its lines, written
    at once, so that nobody waits for minutes without a word.
    """

    def __init__(self, total: int, console: Console | None = None) -> None:
        self.total = total
        self.console = console or Console(stderr=True)
        self.number = 0
        self._name = ""
        self._begin = 0.0
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._bar = Progress(*columns, TimeElapsedColumn(), console=self.console)
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> "Cases":
        if self.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self.console.is_terminal:
            self._bar.stop()

    def begin(self, name: str) -> None:
        """The next case is measured from now on."""
        self.number += 1
        self._name, self._begin = name, time.perf_counter()
        self._bar.update(self._task, description=name)
        if not self.console.is_terminal:
            self._say(f"{name} …")

    def end(self, found: str = "") -> None:
        """That case is done; ``found`` is its result in a few words."""
        self._bar.advance(self._task)
        taken = f"{time.perf_counter() - self._begin:.0f} s"
        if not self.console.is_terminal:
            self._say(f"{self._name}: {found}, {taken}" if found else f"{self._name}: {taken}")

    def _say(self, text: str) -> None:
        self.console.print(
            f"{self.number}/{self.total}  {text}", highlight=False, markup=False, soft_wrap=True
        )
        self.console.file.flush()
