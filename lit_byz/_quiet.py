"""What MLflow and the libraries beneath it say and wait for, while they work for us."""

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator

# What libraries are told through the environment, unless somebody has told them otherwise.
TOLD = {
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # Patience is ours: MLflow would try for minutes without a word.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}
LOGGERS = ("mlflow", "alembic", "sqlalchemy", "sqlalchemy.engine", "urllib3")
# How many calls are under way, and what puts back what the first of them found.
_CALLS = threading.Lock()
_under_way: list[Callable[[], None]] = []


def quiet() -> None:
    """Libraries tell of every table, file and run, and log errors that they raise as well."""
    for name, value in TOLD.items():
        os.environ.setdefault(name, value)
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


@contextlib.contextmanager
def for_a_while() -> Iterator[None]:
    """Quiet for one call of a user's program, which may use MLflow itself before and after it."""
    with _CALLS:
        _under_way.append(_found() if not _under_way else _under_way[0])
        quiet()
    try:
        yield
    finally:
        with _CALLS:
            back = _under_way.pop()
            if not _under_way:
                back()


def _found() -> Callable[[], None]:
    """What puts the environment and the loggers back."""
    unset = [name for name in TOLD if name not in os.environ]
    levels = {name: logging.getLogger(name).level for name in LOGGERS}

    def back() -> None:
        for name in unset:
            os.environ.pop(name, None)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)

    return back
