"""Standard output for a command's answer alone, whatever libraries and users' classes print."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

STDOUT, STDERR = 1, 2

_kept: list[TextIO] = []


def stream() -> TextIO:
    """Where a command writes its answer: standard output, also while nothing else may."""
    return _kept[-1] if _kept else sys.stdout


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Let everything that is printed go to standard error, but for what :func:`stream` gets.

    Processes that are started meanwhile inherit that. Where somebody has put another object in the
    place of standard output, its number stays as it is.
    """
    before = sys.stdout
    with contextlib.ExitStack() as stack:
        _kept.append(stack.enter_context(_own_number(before)))
        stack.callback(_kept.pop)
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


@contextlib.contextmanager
def _own_number(output: TextIO) -> Iterator[TextIO]:
    """The same output under a number of its own, and standard error under that of the output."""
    try:
        ours = output.fileno() == STDOUT
        output.flush()
        copy = os.dup(STDOUT) if ours else -1
        if ours:
            os.dup2(STDERR, STDOUT)
    except (AttributeError, OSError, ValueError):  # it is no file, or there is no standard error
        copy = -1
    if copy < 0:
        yield output
        return
    own = open(copy, "w", encoding=output.encoding, errors=output.errors)  # noqa: PTH123, SIM115
    try:
        yield own
    finally:
        os.dup2(copy, STDOUT)
        with contextlib.suppress(BrokenPipeError):  # which whoever wrote the answer has heard of
            own.close()
