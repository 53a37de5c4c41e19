"""Claims: names that one process has at a time, and loses when it ends, in whatever way."""

import contextlib
import hashlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from filelock import FileLock, Timeout

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

# Seconds between two attempts, at first and at last. A wait in a database could not be interrupted.
SHORT, LONG = 0.05, 1.0
# Seconds for which a process that was asked to end waits for somebody's short work.
HURRIED = 5.0


class ClaimLost(Exception):
    """Another process has taken over what this one had claimed: it must not write any more."""


class Elsewhere(Exception):
    """Another process has what was to be claimed, and has not given it back in time."""


class NotAwaited(KeyboardInterrupt):
    """This process was asked to end while it waited for something that another one has."""


class Claim(Protocol):
    """A name that this process has."""

    def check(self) -> None:
        """Raise :class:`ClaimLost` unless the name is still ours."""
        ...

    def give_back(self) -> None: ...


class Claims(Protocol):
    """Where claims are kept; all who are to hear of each other need the same place."""

    @property
    def longest(self) -> float:
        """Seconds between two attempts, at most, of somebody who waits."""
        ...

    def take(self, name: str) -> Claim | None:
        """Claim a name if it is free now."""
        ...


@dataclass(frozen=True)
class Held:
    """A claim that cannot be lost while its process lives."""

    give_back: Callable[[], None]

    def check(self) -> None:
        return


@dataclass(frozen=True)
class FileClaims:
    """Locks on files of a folder, which several machines have to share."""

    folder: Path
    longest: float = LONG

    def take(self, name: str) -> Claim | None:
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / f"{name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return None
        return Held(lock.release)


@dataclass(frozen=True)
class DatabaseClaims:
    """Advisory locks of a PostgreSQL database, each with a connection of its own.

    They are lost with the connection, so they are for short work only.
    """

    uri: str
    longest: float = LONG

    def take(self, name: str) -> Claim | None:
        from sqlalchemy import create_engine, text
        from sqlalchemy.pool import NullPool

        number = lock_number(name)
        engine = create_engine(self.uri, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        connection = engine.connect()
        if connection.scalar(text("select pg_try_advisory_lock(:number)"), {"number": number}):
            return Held(lambda: _close(connection))
        connection.close()
        return None


def lock_number(name: str) -> int:
    """The number of the advisory lock that a name has in a database."""
    digest = hashlib.sha256(f"lit_byz {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _close(connection: "Connection") -> None:
    from sqlalchemy import text
    from sqlalchemy.exc import DBAPIError

    # A connection that broke has lost its claim already.
    with contextlib.suppress(DBAPIError), connection:
        connection.execute(text("select pg_advisory_unlock_all()"))


def short_claims(uri: str | None, folder: Path) -> Claims:
    """Claims for short work, kept by the database at ``uri``, or else in the folder."""
    if uri is not None and uri.startswith("postgresql"):
        return DatabaseClaims(uri)
    return FileClaims(folder / "locks")


@contextlib.contextmanager
def held(
    claims: Claims,
    name: str,
    most: float = math.inf,
    hurried: Callable[[], bool] = lambda: False,
) -> Iterator[Claim]:
    """Hold a claim; wait while another one has it, but not for more than ``most`` seconds.

    Whoever is ``hurried`` waits as long as short work takes, and then raises ``NotAwaited``.
    """
    pause, end, last = SHORT, time.monotonic() + most, math.inf
    while (claim := claims.take(name)) is None:
        now = time.monotonic()
        if now >= end:
            raise Elsewhere(name)
        if hurried():
            last = min(last, now + HURRIED)
        if now >= last:
            raise NotAwaited(name)
        _sleep(min(pause, end - now), hurried)
        pause = min(claims.longest, 1.5 * pause)
    try:
        yield claim
    finally:
        claim.give_back()


def _sleep(seconds: float, hurried: Callable[[], bool]) -> None:
    """Wait, and look around now and then."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, LONG))
        if hurried():
            return
