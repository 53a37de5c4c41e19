"""A word on standard error about what takes longer than a moment: imports, tables, figures."""

import sys
import threading

# Seconds after which something is said: what is done before needs no word.
AFTER = 0.5

_waiting: list[threading.Timer] = []
_quiet = threading.Event()


def quietly(quiet: bool) -> None:
    """Say nothing from now on, or something again."""
    if quiet:
        _quiet.set()
    else:
        _quiet.clear()


def now(what: str) -> None:
    """From now on ``what`` is going on, which is said if it takes longer than a moment."""
    over()
    if _quiet.is_set():
        return
    timer = threading.Timer(AFTER, _say, [what])
    timer.daemon = True
    _waiting.append(timer)
    timer.start()


def over() -> None:
    """What was going on is over."""
    while _waiting:
        _waiting.pop().cancel()


def _say(what: str) -> None:
    stream = sys.stderr
    if stream is not None:
        stream.write(f"{what} …\n")
        stream.flush()
