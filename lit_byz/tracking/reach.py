"""Reaching a store: whether there is one at an address, and making it where it is a file."""

import contextlib
import socket
import sqlite3
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

from lit_byz._passwords import without_user

SQLITE = "sqlite:///"
# Where databases listen unless an address says otherwise.
PORTS = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}


def from_anywhere(uri: str) -> str:
    """The address of an SQLite store, also for a process that changes its working directory.

    MLflow keeps one engine for each address: that of a file in a folder left before would be
    taken for a file of the same name here. A folder that an address cannot spell stays as it is.
    """
    here, name = str(Path.cwd()), uri.removeprefix(SQLITE)
    if name == uri or name.startswith("/") or quote(here) != here:
        return uri
    return f"{SQLITE}{here}/{name}"


def make(path: Path) -> None:
    """Make an SQLite file with MLflow's tables.

    MLflow makes them one by one, and cannot go on if it is killed in between: a new file gets its
    name when it is complete.
    """
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    new = path.with_suffix(".new")
    for left in (new, Path(f"{new}-journal")):
        left.unlink(missing_ok=True)
    artifacts = (path.parent.absolute() / "artifacts").as_uri()
    made = SqlAlchemyStore(from_anywhere(f"{SQLITE}{new}"), artifacts)
    made.engine.dispose()
    new.replace(path)


def use_wal(path: Path) -> None:
    """See that a file can be opened, for which MLflow would try for more than a minute."""
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as database:
        # Readers and one writer at a time, without stalls of seconds.
        database.execute("PRAGMA journal_mode=WAL")


def call(uri: str) -> None:
    """Raise OSError where a server does not answer. Whether it lets us in is seen later."""
    bare = without_user(uri).rstrip("/")  # MLflow takes user and password
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(f"{bare}/health", timeout=20).close()


def knock(uri: str) -> None:
    """Raise OSError where a database does not answer; MLflow would ask for minutes."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parts = make_url(uri)  # as MLflow reads it, where passwords may have / in them
    except ArgumentError:
        return  # one of MLflow's other kinds of stores
    port = parts.port or PORTS.get(parts.drivername.split("+")[0])
    if parts.host and port:
        socket.create_connection((parts.host, port), timeout=20).close()
