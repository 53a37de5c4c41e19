"""MLflow's client, made when it is first used; and why that may fail, in one line."""

import contextlib
import http.client
import sqlite3
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lit_byz._passwords import without_passwords, without_secrets_of
from lit_byz.errors import BadRequest, RunFailed

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient


class LateClient:
    """Stands for a client that takes seconds to make: many commands only read, without it."""

    def __init__(self, make: "Callable[[], MlflowClient]", uri: str) -> None:
        self._make = make
        self._uri = uri

    @cached_property
    def _made(self) -> "MlflowClient":
        with told(self._uri):
            return self._make()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


@contextlib.contextmanager
def told(uri: str) -> Iterator[None]:
    """Say in one line why a store cannot be opened."""
    try:
        yield
    except (ValueError, OverflowError, http.client.HTTPException) as error:
        raise BadRequest(
            f"tracking.uri = {without_passwords(uri)}: is no address; in a password / is "
            "written as %2F and @ as %40"
        ) from error
    except _failures() as error:
        reason = without_secrets_of(" ".join(str(error).split()), uri)[:300]
        shown = without_passwords(uri)
        raise RunFailed(f"tracking.uri = {shown}: cannot be opened: {reason}") from error


def _failures() -> tuple[type[Exception], ...]:
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return (MlflowException, SQLAlchemyError, ImportError, OSError, sqlite3.Error)
