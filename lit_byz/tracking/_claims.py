"""Claims that PostgreSQL keeps: its advisory locks end with the connection that holds them."""

import contextlib
import hashlib
import time
from collections.abc import Iterator

# Seconds between two attempts. A wait inside the database could not be interrupted.
PAUSE = 0.2


def is_postgresql(uri: str) -> bool:
    return uri.startswith("postgresql")


@contextlib.contextmanager
def held_in_database(uri: str, claim: str) -> Iterator[None]:
    """Hold a claim that one connection to the database has at a time; wait for it."""
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    digest = hashlib.sha256(f"lit_byz {claim}".encode()).digest()
    number = {"number": int.from_bytes(digest[:8], "big", signed=True)}
    engine = create_engine(uri, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        while not connection.scalar(text("select pg_try_advisory_lock(:number)"), number):
            time.sleep(PAUSE)
        try:
            yield
        finally:
            # A connection that broke meanwhile has given its claim up already.
            with contextlib.suppress(DBAPIError):
                connection.execute(text("select pg_advisory_unlock(:number)"), number)
