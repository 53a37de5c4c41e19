"""Where tracked runs are kept, and how to find them again."""

import contextlib
import os
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from filelock import FileLock

from lit_byz.errors import BadRequest, RunFailed

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

FOLDER = Path("mlruns")
SQLITE = "sqlite:///"
# Tags by which runs are found.
IDENTITY = "lit_byz.identity"
KIND = "lit_byz.kind"
PARENT = "mlflow.parentRunId"


def default_uri() -> str:
    """``MLFLOW_TRACKING_URI``, or an SQLite file below ``mlruns/`` here."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"{SQLITE}{FOLDER}/mlflow.db"


@dataclass(frozen=True)
class Store:
    """An MLflow tracking store."""

    uri: str
    client: "MlflowClient"

    @property
    def sqlite_file(self) -> Path | None:
        return Path(unquote(self.uri[len(SQLITE) :])) if self.uri.startswith(SQLITE) else None

    @property
    def folder(self) -> Path:
        """Where files that belong to the store's runs lie: beside SQLite, else ``mlruns/``."""
        return FOLDER if self.sqlite_file is None else self.sqlite_file.parent

    @property
    def ui_command(self) -> str:
        """The line that opens the UI on this store."""
        if self.uri.startswith("http"):
            return f"open {self.uri}"
        return f"mlflow ui --backend-store-uri {self.uri}"

    def experiment(self, name: str) -> str:
        """The id of the experiment ``name``, made if there is none."""
        from mlflow.exceptions import MlflowException

        found = self.client.get_experiment_by_name(name)
        if found is None:
            location = None
            if self.sqlite_file is not None:
                location = (self.folder.absolute() / "artifacts" / name).as_uri()
            try:
                return str(self.client.create_experiment(name, artifact_location=location))
            except MlflowException:
                found = self.client.get_experiment_by_name(name)  # another process was first
        if found is None or found.lifecycle_stage != "active":
            raise BadRequest(
                f"tracking.experiment = {name}: that MLflow experiment is deleted; restore it or "
                "choose another name"
            )
        return str(found.experiment_id)

    def find(self, experiment_id: str, identity: str) -> "list[Run]":
        """The runs of one identity, newest first."""
        query = f"tags.`{IDENTITY}` = '{identity}'"
        return list(self.client.search_runs([experiment_id], query))

    def children(self, experiment_id: str, parent: str) -> "list[Run]":
        """The runs directly below a run."""
        query = f"tags.`{PARENT}` = '{parent}'"
        return list(self.client.search_runs([experiment_id], query, max_results=50_000))

    def history(self, run_id: str, key: str) -> list[tuple[int, float]]:
        """The (step, value) pairs of one metric, by step."""
        found = self.client.get_metric_history(run_id, key)
        return sorted((metric.step, metric.value) for metric in found)


def open_store(uri: str | None = None) -> Store:
    """The store at ``uri`` (default: :func:`default_uri`), made if it is a new SQLite file."""
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient
    from sqlalchemy.exc import SQLAlchemyError

    chosen = uri or default_uri()
    _quiet()
    try:
        if not chosen.startswith(SQLITE):
            _knock(chosen)
            return Store(chosen, MlflowClient(tracking_uri=chosen))
        path = Path(unquote(chosen[len(SQLITE) :]))
        path.parent.mkdir(parents=True, exist_ok=True)
        # MLflow makes its tables on first contact; two processes at it would trip over each other.
        with FileLock(path.with_suffix(".lock")):
            # Before MLflow, which tries a file that cannot be opened for more than a minute.
            with contextlib.closing(sqlite3.connect(path, timeout=60)) as database:
                # Readers and one writer at a time, without stalls of seconds.
                database.execute("PRAGMA journal_mode=WAL")
            client = MlflowClient(tracking_uri=chosen)
            client.search_experiments(max_results=1)
        return Store(chosen, client)
    except (MlflowException, SQLAlchemyError, ImportError, OSError, sqlite3.Error) as error:
        reason = " ".join(str(error).split())[:300]
        raise RunFailed(f"tracking.uri = {chosen}: cannot be opened: {reason}") from error


def _knock(uri: str) -> None:
    """Raise OSError where a server does not answer; MLflow would ask for minutes."""
    if not uri.startswith(("http://", "https://")):
        return
    # Whether a server that answers lets us in is seen later.
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=20).close()


def flatten(plain: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as ``section.key`` to text, as MLflow's params want them."""
    flat: dict[str, str] = {}
    for key, value in plain.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = str(value)[:250]
    return flat


def _quiet() -> None:
    """MLflow and alembic tell of every table they make; nobody asked."""
    import logging

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
