"""Claims on trials, kept where the trials are: who works on a study hears of the others there."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz.tracking.claims import LONG, Claim, ClaimLost, Claims, FileClaims, lock_number
from lit_byz.tracking.store import Store

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

LOCK = "select pg_try_advisory_lock(:number)"
UNLOCK = "select pg_advisory_unlock(:number)"
ANSWER = "select :number is not null"
# The database finds out by itself that a machine has gone without a word: in a minute.
KEEPALIVE = {"tcp_keepalives_idle": 20, "tcp_keepalives_interval": 10, "tcp_keepalives_count": 4}


def claims_beside(url: str | None, store: Store) -> Claims:
    """Claims beside the journal in the store's folder, or in or beside the database at ``url``.

    Of a database that has neither a folder nor locks of its own, the runs' store keeps them.
    """
    from sqlalchemy.engine import make_url

    if url is None:
        return FileClaims(store.folder / "locks")
    parts = make_url(url)
    if parts.get_backend_name() == "postgresql":
        return SessionClaims(url)
    if parts.get_backend_name() == "sqlite" and parts.database not in (None, "", ":memory:"):
        return FileClaims(Path(f"{parts.database}.locks"))
    return store.claims


def _at_once(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


@dataclass
class SessionClaims:
    """Advisory locks of a PostgreSQL database, all of a process by one connection.

    They go with the connection. One that broke is made anew with the locks that it had; those that
    somebody else has by then are lost. ``patiently`` is how a database that is away is waited for.
    """

    uri: str
    patiently: Callable[..., Any] = _at_once
    longest: float = LONG
    _held: set[str] = field(default_factory=set)
    _connection: "Connection | None" = None

    def take(self, name: str) -> Claim | None:
        # A session could have a lock twice.
        if name in self._held or not self.patiently(self._ask, LOCK, name):
            return None
        self._held.add(name)
        return SessionClaim(self, name)

    def check(self, name: str) -> None:
        self.patiently(self._ask, ANSWER, name)
        if name not in self._held:
            raise ClaimLost(f"another process has taken over {name}")

    def give_back(self, name: str) -> None:
        from sqlalchemy.exc import DBAPIError

        if name in self._held:
            self._held.discard(name)
            with contextlib.suppress(DBAPIError):  # a connection that broke has no lock any more
                self._ask(UNLOCK, name)

    def _ask(self, question: str, name: str) -> bool:
        from sqlalchemy import text
        from sqlalchemy.exc import DBAPIError

        try:
            connection = self._connected()
            return bool(connection.scalar(text(question), {"number": lock_number(name)}))
        except DBAPIError:
            broken, self._connection = self._connection, None
            if broken is not None:
                broken.invalidate()
                broken.close()
            raise

    def _connected(self) -> "Connection":
        from sqlalchemy import create_engine, text
        from sqlalchemy.pool import NullPool

        if self._connection is None:
            engine = create_engine(self.uri, poolclass=NullPool, isolation_level="AUTOCOMMIT")
            self._connection = connection = engine.connect()
            for setting, value in KEEPALIVE.items():
                connection.execute(text(f"set {setting} to {value}"))
            for name in list(self._held):
                if not connection.scalar(text(LOCK), {"number": lock_number(name)}):
                    self._held.discard(name)
        return self._connection


@dataclass(frozen=True)
class SessionClaim:
    """One of them."""

    claims: SessionClaims
    name: str

    def check(self) -> None:
        self.claims.check(self.name)

    def give_back(self) -> None:
        self.claims.give_back(self.name)
