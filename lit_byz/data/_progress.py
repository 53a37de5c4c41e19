"""What a person sees while data is on its way; all of it on stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int, int | None], None]


@contextmanager
def progress_bar(description: str) -> Iterator[Advance]:
    """A bar for one download: call the yielded function with (bytes so far, bytes in all or None).

    Without a total it is a moving bar beside the number of bytes so far. Nothing is drawn where
    stderr is not a terminal.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TransferSpeedColumn,
    )

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task(description, total=None)

        def advance(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=None if total is None else max(done, total))

        yield advance


def say(line: str) -> None:
    """One line for a person who waits."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
