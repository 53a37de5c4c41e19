"""Who hears SIGINT and SIGTERM, given back to whom it was."""

import contextlib
import multiprocessing
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


def pass_on(number: int | None) -> None:
    """Raise a signal once more for whoever hears it now: the run that took it was complete.

    That is a sweep whose runs are computed in this process. By default a process would end of it,
    before it has told what the run came to.
    """
    if number is None or not in_main_thread() or multiprocessing.parent_process() is not None:
        return
    if signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler):
        signal.raise_signal(number)
