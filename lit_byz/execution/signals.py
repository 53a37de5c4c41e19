"""Who hears SIGINT and SIGTERM, given back to whom it was."""

import contextlib
import signal
import threading
from collections.abc import Iterator

HEARD = (signal.SIGINT, signal.SIGTERM)


def in_main_thread() -> bool:
    """Whether signals can be taken here: a process hears them in its main thread alone."""
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def handlers_kept() -> Iterator[None]:
    """Whatever takes the signals within, they go where they went before.

    Ray takes SIGTERM as it connects, and ends the process at once on it.
    """
    if not in_main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in HEARD}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: not set by Python, which cannot set it again
                signal.signal(number, handler)
