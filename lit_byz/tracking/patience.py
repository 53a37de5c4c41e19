"""Patience with a store that is away: who waits for how long, and what is told meanwhile."""

import contextlib
import re
import sys
import threading
import time
import urllib.error
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lit_byz._passwords import without_passwords
from lit_byz.errors import RunFailed, disk_is_full

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

Value = TypeVar("Value")

# Seconds that a store may be away unless ``tracking.patience`` says otherwise.
DEFAULT = 600.0
# Seconds between two attempts, at first and at last, and between two lines that say so.
SHORT, LONG, TELL_EVERY = 0.2, 5.0, 60.0
# What a server says of a database that has left it, and drivers of a connection that broke.
DATABASE_AWAY = ("OperationalError", "InterfaceError", "PendingRollbackError")
# Answers of a server, or of what stands before it, that another attempt may not get.
PASSING = frozenset({429, 500, 502, 503, 504})


class StoreGone(RunFailed):
    """The store has been away for longer than anybody wanted to wait."""


def is_away(error: BaseException) -> bool:
    """Whether an error says that the store cannot be reached, or cannot write, for now."""
    import requests
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import InterfaceError, OperationalError, PendingRollbackError

    if disk_is_full(error):
        return False  # which does not pass by itself
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OperationalError | InterfaceError | PendingRollbackError):
            return True
        if isinstance(seen, requests.exceptions.HTTPError):
            return seen.response is not None and seen.response.status_code in PASSING
        if isinstance(seen, requests.exceptions.RequestException | urllib.error.URLError):
            return True
        if isinstance(seen, ConnectionError | TimeoutError):
            return True
        if isinstance(seen, MlflowException) and _says_so(seen):
            return True
        seen = seen.__cause__
    return False


def _says_so(error: Any) -> bool:
    if error.error_code == "TEMPORARILY_UNAVAILABLE":
        return True
    text = str(error)
    asked_in_vain = "API request to " in text and " failed with exception " in text
    return asked_in_vain or any(f".{name})" in text for name in DATABASE_AWAY)


def to_stderr(text: str) -> None:
    """Say something where nobody else watches."""
    sys.stderr.write(f"{text}\n")


@dataclass
class Patience:
    """How long those who use a store wait for it, shared by all of them in a process.

    ``hurried`` ends the waiting: somebody asked the process to end. ``waiting`` counts the metrics
    that are kept in memory meanwhile.
    """

    uri: str
    seconds: float = DEFAULT
    tell: Callable[[str], None] = to_stderr
    hurried: bool = False
    waiting: int = 0
    _since: tuple[float, str] | None = None
    _told: float | None = None
    _reason: str = ""

    @property
    def away(self) -> bool:
        return self._since is not None

    @property
    def over(self) -> bool:
        """Whether the store is away and has been for too long."""
        since = self._since
        return since is not None and (self.hurried or _now() - since[0] >= self.seconds)

    def call(self, function: Callable[..., Value], *args: Any, **kwargs: Any) -> Value:
        """Call ``function`` until the store is there to answer."""
        pause = SHORT
        while True:
            try:
                found = function(*args, **kwargs)
            except Exception as error:
                if not is_away(error):
                    raise
                self.note(error)
                if self.over:
                    raise self.gone() from error
                self.sleep(pause)
                pause = min(LONG, 2 * pause)
            else:
                self.back()
                return found

    def sleep(self, seconds: float) -> None:
        """Wait, but not if somebody is in a hurry."""
        end = _now() + seconds
        while not self.hurried and (left := end - _now()) > 0:
            time.sleep(min(left, 0.2))

    def note(self, error: BaseException) -> None:
        """The store was found to be away: say so at first, and now and then."""
        now = _now()
        if self._since is None:
            self._since = (now, time.strftime("%H:%M:%S"))
            self._reason = _one_line(error)
        if self._told is None or now - self._told >= TELL_EVERY:
            self._told = now
            self.tell(self.text)

    def back(self) -> None:
        """The store answered."""
        since, self._since, self._told = self._since, None, None
        if since is not None:
            self.tell(f"store back after {_now() - since[0]:.0f} s")

    def begin_anew(self) -> None:
        """Forget how long the store has been away: whoever begins now has all of the patience."""
        self._since = self._told = None

    @property
    def text(self) -> str:
        """``store away since …``; nothing while it is there."""
        since = self._since  # which another thread may change
        if since is None:
            return ""
        left = f"{self.waiting} metrics waiting, " if self.waiting else ""
        until = f"for at most {self.seconds:g} s"
        return f"store away since {since[1]}: {left}runs go on {until} ({self._reason})"

    def gone(self) -> StoreGone:
        shown, since = without_passwords(self.uri), self._since
        if since is None:
            return StoreGone(f"tracking.uri = {shown}: away")
        return StoreGone(f"tracking.uri = {shown}: away since {since[1]} ({self._reason})")


def _now() -> float:
    return time.monotonic()


def _one_line(error: BaseException) -> str:
    """The innermost reason in some words."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(str(without_passwords(str(error))).split())
    known = re.search(r"\[Errno \d+\] ([A-Za-z ]+)", text) or re.search(r"Caused by (.*)\)$", text)
    if known:
        return known[1].strip()[:120]
    text = text.rpartition(" failed with exception ")[2]
    return text.partition(" (Background on this error")[0][:120]


class PatientClient:
    """MLflow's client, every call of which waits for a store that is away.

    Calls are repeated, so each has to do no harm if it had been heard the first time. Writing a
    metric, a tag, a param or a status again does none; a run that is created is looked for first.
    """

    def __init__(self, client: "MlflowClient", patience: Patience) -> None:
        self._client = client
        self._patience = patience

    def __getattr__(self, name: str) -> Any:
        def patiently(*args: Any, **kwargs: Any) -> Any:
            # The client itself may be made by the first call.
            return self._patience.call(lambda: getattr(self._client, name)(*args, **kwargs))

        return patiently

    def create_run(self, experiment_id: str, **kwargs: Any) -> Any:
        """A new run; one that was made by an attempt that got no answer is taken."""
        import uuid

        token = uuid.uuid4().hex
        kwargs["tags"] = {**kwargs.get("tags", {}), TOKEN: token}
        tried = False

        def create() -> Any:
            nonlocal tried
            if tried:
                made = self._client.search_runs([experiment_id], f"tags.`{TOKEN}` = '{token}'")
                if made:
                    return made[0]
            tried = True
            return self._client.create_run(experiment_id, **kwargs)

        return self._patience.call(create)


TOKEN = "lit_byz.token"


def patient(client: "MlflowClient", patience: Patience) -> "MlflowClient":
    """``client`` with patience."""
    return cast("MlflowClient", PatientClient(client, patience))


@contextlib.contextmanager
def told_to(tell: Callable[[str], None], patience: Patience) -> Iterator[None]:
    """Have somebody else told of a store that is away, for a while, which begins anew."""
    before, patience.tell = patience.tell, tell
    patience.begin_anew()
    try:
        yield
    finally:
        patience.tell = before


def in_background(name: str, work: Callable[[], None]) -> threading.Thread:
    """Do something beside everything else; it does not keep the process alive."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
