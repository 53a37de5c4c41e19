"""Where tracked runs are kept, and how to find them again."""

import contextlib
import http.client
import os
import socket
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from lit_byz._passwords import without_passwords, without_secrets_of
from lit_byz.errors import BadRequest, RunFailed
from lit_byz.tracking.claims import claims_at, held

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

FOLDER = Path("mlruns")
SQLITE = "sqlite:///"
# Tags by which runs are found.
IDENTITY = "lit_byz.identity"
SETTINGS = "lit_byz.settings"
CODE = "lit_byz.code"
ENVIRONMENT = "lit_byz.environment"
KIND = "lit_byz.kind"
MACHINE = "lit_byz.machine"
PARENT = "mlflow.parentRunId"
# Where databases listen unless an address says otherwise.
PORTS = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}
# MLflow takes at most this many params in one write.
PARAMS_AT_ONCE = 100


def default_uri() -> str:
    """``MLFLOW_TRACKING_URI``, or an SQLite file below ``mlruns/`` here."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"{SQLITE}{FOLDER}/mlflow.db"


def claim_on(identity: str) -> str:
    """The name of the claim on the run with this identity."""
    return identity[:32]


@dataclass(frozen=True)
class Store:
    """An MLflow tracking store."""

    uri: str
    client: "MlflowClient"

    @property
    def sqlite_file(self) -> Path | None:
        return _sqlite_file(self.uri)

    @property
    def folder(self) -> Path:
        """Where files that belong to the store's runs lie: beside SQLite, else ``mlruns/``."""
        return FOLDER if self.sqlite_file is None else self.sqlite_file.parent

    def alone(self, claim: str) -> AbstractContextManager[None]:
        """Hold a claim that one process on this store has at a time; wait while another has it."""
        return held(claims_at(self.uri, self.folder), claim)

    def claim(self, name: str) -> Callable[[], None] | None:
        """Take such a claim if nobody has it now: how to give it back, else None."""
        return claims_at(self.uri, self.folder).take(name)

    @property
    def ui_command(self) -> str:
        """The line that opens the UI on this store."""
        shown = without_passwords(self.uri)
        server = _is_server(self.uri)
        return f"open {shown}" if server else f"mlflow ui --backend-store-uri {shown}"

    def experiment(self, name: str) -> str:
        """The id of the experiment ``name``, made if there is none."""
        from mlflow.exceptions import MlflowException

        found = self.client.get_experiment_by_name(name)
        if found is None:
            location = None
            if not _is_server(self.uri):  # which keeps artifacts itself
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

    def search(self, experiment_id: str, query: str) -> "list[Run]":
        """All runs that a query asks for, newest first."""
        found: list[Run] = []
        token = None
        while True:
            page = self.client.search_runs(
                [experiment_id], query, max_results=1000, page_token=token
            )
            found += page
            token = page.token
            if not token:
                return found

    def find(self, experiment_id: str, identity: str) -> "list[Run]":
        """The runs of one identity, newest first."""
        return self.search(experiment_id, f"tags.`{IDENTITY}` = '{identity}'")

    def children(self, experiment_id: str, parent: str) -> "list[Run]":
        """The runs directly below a run."""
        return self.search(experiment_id, f"tags.`{PARENT}` = '{parent}'")

    def run(self, run_id: str) -> "Run | None":
        """The run with this id, if there is one."""
        from mlflow.exceptions import MlflowException

        try:
            return self.client.get_run(run_id)
        except MlflowException:
            return None

    def write_metrics(self, run_id: str, metrics: Mapping[str, float]) -> None:
        """Write single values in one go."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        if metrics:
            self.client.log_batch(run_id, [Metric(k, v, now, 0) for k, v in metrics.items()])

    def write_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Write tags in one go."""
        from mlflow.entities import RunTag

        self.client.log_batch(run_id, tags=[RunTag(k, v) for k, v in tags.items()])

    def write_params(self, run_id: str, settings: Mapping[str, Any]) -> None:
        """Write settings to a run, flat; those that are there already stay as they are."""
        from mlflow.entities import Param

        known = self.client.get_run(run_id).data.params
        new = [Param(key, text) for key, text in flatten(settings).items() if key not in known]
        for start in range(0, len(new), PARAMS_AT_ONCE):
            self.client.log_batch(run_id, params=new[start : start + PARAMS_AT_ONCE])

    def history(self, run_id: str, key: str) -> list[tuple[int, float]]:
        """The (step, value) pairs of one metric, by step."""
        found = self.client.get_metric_history(run_id, key)
        return sorted((metric.step, metric.value) for metric in found)


def open_store(uri: str | None = None) -> Store:
    """The store at ``uri`` (default: :func:`default_uri`), made if it is a new SQLite file.

    A process opens each store once; a file that has gone since is made again.
    """
    chosen = uri or default_uri()
    path = _sqlite_file(chosen)
    place = chosen if path is None else str(path.absolute())
    known = _OPEN.get((os.getpid(), place, str(Path.cwd())))
    if known is None or (path is not None and not path.exists()):
        known = _OPEN[os.getpid(), place, str(Path.cwd())] = _opened(chosen)
    return known


# By process, place and working directory: a forked process has to open its own.
_OPEN: dict[tuple[int, str, str], Store] = {}


def _opened(chosen: str) -> Store:
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient
    from sqlalchemy.exc import SQLAlchemyError

    _quiet()
    try:
        if _is_server(chosen):
            _call(chosen)
            return Store(chosen, MlflowClient(tracking_uri=chosen))
        path = _sqlite_file(chosen)
        if path is None:
            _knock(chosen)
        folder = FOLDER if path is None else path.parent
        # MLflow makes its tables on first contact; two processes at it would trip over each other.
        with held(claims_at(chosen, folder), "tables" if path is None else f"tables-{path.stem}"):
            if path is not None:
                _prepare(path)
            client = MlflowClient(tracking_uri=chosen)
            client.search_experiments(max_results=1)
        return Store(chosen, client)
    except (ValueError, OverflowError, http.client.HTTPException) as error:
        raise BadRequest(
            f"tracking.uri = {without_passwords(chosen)}: is no address; in a password / is "
            "written as %2F and @ as %40"
        ) from error
    except (MlflowException, SQLAlchemyError, ImportError, OSError, sqlite3.Error) as error:
        reason = without_secrets_of(" ".join(str(error).split()), chosen)[:300]
        shown = without_passwords(chosen)
        raise RunFailed(f"tracking.uri = {shown}: cannot be opened: {reason}") from error


def _sqlite_file(uri: str) -> Path | None:
    return Path(unquote(uri[len(SQLITE) :])) if uri.startswith(SQLITE) else None


def _is_server(uri: str) -> bool:
    return uri.startswith(("http://", "https://"))


def _prepare(path: Path) -> None:
    """Make an SQLite file if there is none, and see that it can be opened.

    MLflow would try for more than a minute. It also makes its tables one by one, and cannot go on
    if it is killed in between: a new file gets its name when it is complete.
    """
    if not path.exists():
        from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

        new = path.with_suffix(".new")
        for left in (new, Path(f"{new}-journal")):
            left.unlink(missing_ok=True)
        made = SqlAlchemyStore(f"{SQLITE}{new}", (path.parent.absolute() / "artifacts").as_uri())
        made.engine.dispose()
        new.replace(path)
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as database:
        # Readers and one writer at a time, without stalls of seconds.
        database.execute("PRAGMA journal_mode=WAL")


def _call(uri: str) -> None:
    """Raise OSError where a server does not answer. Whether it lets us in is seen later."""
    parts = urlsplit(uri)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])  # MLflow takes user and password
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(f"{bare.geturl().rstrip('/')}/health", timeout=20).close()


def _knock(uri: str) -> None:
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


def flatten(plain: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as ``section.key`` to text, as MLflow's params want them."""
    flat: dict[str, str] = {}
    for key, value in plain.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = str(without_passwords(value))[:250]
    return flat


def _quiet() -> None:
    """MLflow and alembic tell of every table they make, and of every file; nobody asked."""
    import logging

    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
