"""Where tracked runs are kept, and how to find them again."""

import math
import os
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lit_byz._door import line
from lit_byz._passwords import without_passwords
from lit_byz._quiet import quiet
from lit_byz.errors import BadRequest
from lit_byz.tracking.claims import Claim, Claims, FileClaims, held, short_claims
from lit_byz.tracking.late import LateClient, told
from lit_byz.tracking.leases import LeaseClaims
from lit_byz.tracking.patience import Patience, is_away, patient
from lit_byz.tracking.reach import SQLITE, call, from_anywhere, knock, make, use_wal
from lit_byz.tracking.renamed import OLD_THRESHOLD, THRESHOLD
from lit_byz.tracking.silence import limit_silence
from lit_byz.tracking.tables import active_experiment, enter, is_read

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

FOLDER = Path("mlruns")
# Tags by which runs are found.
IDENTITY = "lit_byz.identity"
SETTINGS = "lit_byz.settings"
CODE = "lit_byz.code"
ENVIRONMENT = "lit_byz.environment"
KIND = "lit_byz.kind"
MACHINE = "lit_byz.machine"
STATUS = "lit_byz.status"
PARENT = "mlflow.parentRunId"
# What MLflow says of a run that it does not have, or that cannot be one's id.
NOT_THERE = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
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
    """An MLflow tracking store.

    Calls of ``client`` wait for a store that is away, as long as ``patience`` has it; those of
    ``asked_once`` do not.
    """

    uri: str
    asked_once: "MlflowClient"
    patience: Patience
    claims: Claims

    @classmethod
    def of(cls, uri: str, client: "MlflowClient") -> "Store":
        patience, path = Patience(uri), sqlite_file(uri)
        if path is not None:
            return cls(uri, client, patience, FileClaims(path.parent / "locks"))
        return cls(uri, client, patience, LeaseClaims(client, patience.call))

    @cached_property
    def client(self) -> "MlflowClient":
        return patient(self.asked_once, self.patience)

    @property
    def sqlite_file(self) -> Path | None:
        return sqlite_file(self.uri)

    @property
    def folder(self) -> Path:
        """Where files that belong to the store's runs lie: beside SQLite, else ``mlruns/``."""
        return FOLDER if self.sqlite_file is None else self.sqlite_file.parent

    @property
    def is_server(self) -> bool:
        return _is_server(self.uri)

    def alone(self, claim: str, most: float = math.inf) -> AbstractContextManager[Claim]:
        """Hold a claim that one process has at a time; wait while another has it, so many s."""
        return held(self.claims, claim, most, lambda: self.patience.hurried)

    def answers(self) -> bool:
        """Whether the store is there now, asked once."""
        try:
            self.asked_once.search_experiments(max_results=1)
        except Exception as error:
            if not is_away(error):
                raise
            self.patience.note(error)
            return False
        self.patience.back()
        return True

    @property
    def ui_command(self) -> str:
        """The command that opens MLflow's UI on this store."""
        if self.uri == default_uri():
            return line("ui")
        return f"{line('ui')} {shlex.quote(f'tracking.uri={without_passwords(self.uri)}')}"

    def experiment(self, name: str) -> str:
        """The id of the experiment ``name``, made if there is none."""
        if (known := active_experiment(self.uri, name)) is not None:
            return known
        from mlflow.exceptions import MlflowException

        found = self.client.get_experiment_by_name(name)
        if found is None:
            location = None
            if not self.is_server:  # which keeps artifacts itself
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
        return list(self.each(experiment_id, query))

    def each(self, experiment_id: str, query: str) -> "Iterator[Run]":
        """The same one by one, of which no more than a page is kept."""
        token = None
        while True:
            page = self.client.search_runs(
                [experiment_id], query, max_results=1000, page_token=token
            )
            yield from page
            token = page.token
            if not token:
                return

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
        except MlflowException as error:
            if error.error_code not in NOT_THERE:
                raise
            return None

    def write_metrics(self, run_id: str, metrics: Mapping[str, float]) -> None:
        """Write single values in one go."""
        if metrics:
            self.write(run_id, metrics, {})

    def write_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Write tags in one go."""
        self.write(run_id, {}, tags)

    def write(
        self, run_id: str, metrics: Mapping[str, float], tags: Mapping[str, str], step: int = 0
    ) -> None:
        """Write single values and tags in one go; those of the highest ``step`` are shown."""
        from mlflow.entities import Metric, RunTag

        now = int(time.time() * 1000)
        values = [Metric(key, value, now, step) for key, value in metrics.items()]
        self.client.log_batch(run_id, values, tags=[RunTag(k, v) for k, v in tags.items()])

    def write_params(self, run_id: str, settings: Mapping[str, Any], *, new: bool = False) -> None:
        """Write settings to a run, flat; those that are there already stay as they are."""
        from mlflow.entities import Param

        known = {} if new else self.client.get_run(run_id).data.params
        params = [Param(key, text) for key, text in flatten(settings).items() if key not in known]
        for start in range(0, len(params), PARAMS_AT_ONCE):
            self.client.log_batch(run_id, params=params[start : start + PARAMS_AT_ONCE])

    def history(self, run_id: str, key: str) -> list[tuple[int, float]]:
        """The (step, value) pairs of one metric, by step; one of before is found by its new name.

        Where a step was computed twice, and not alike, the last value counts.
        """
        found = self.client.get_metric_history(run_id, key)
        if not found and key == THRESHOLD:
            found = self.client.get_metric_history(run_id, OLD_THRESHOLD)
        by_step = {m.step: m.value for m in sorted(found, key=lambda metric: metric.timestamp)}
        return sorted(by_step.items())


def store_is_there(uri: str | None = None) -> bool:
    """Whether a store has not to be made first; of a server or a database that is taken for so."""
    path = sqlite_file(uri or default_uri())
    return path is None or path.exists()


def open_store(
    uri: str | None = None, patience: float | None = None, *, wait: bool = False
) -> Store:
    """The store at ``uri`` (default: :func:`default_uri`), made if it is a new SQLite file.

    A process opens each store once; a file that has gone since is made again. ``patience`` says for
    how many seconds everybody in this process waits for it from now on, should it go away;
    ``wait``, that it is known to be a store, and may be away already.
    """
    chosen = uri or default_uri()
    path = sqlite_file(chosen)
    place = chosen if path is None else str(path.absolute())
    known = _OPEN.get((os.getpid(), place, str(Path.cwd())))
    if known is None or (path is not None and not path.exists()):
        waiting = Patience(chosen, 0.0 if patience is None else patience)
        opened = waiting.call(_opened, chosen) if wait else _opened(chosen)
        known = _OPEN[os.getpid(), place, str(Path.cwd())] = opened
    if patience is not None:
        known.patience.seconds = patience
    return known


# By process, place and working directory: a forked process has to open its own.
_OPEN: dict[tuple[int, str, str], Store] = {}


def _opened(chosen: str) -> Store:
    path = sqlite_file(chosen)
    with told(chosen):
        if _is_server(chosen):
            call(chosen)
        elif path is None:
            limit_silence()
            knock(chosen)
            if is_read(chosen):
                enter(chosen)
        elif path.exists():
            use_wal(path)
        # MLflow takes seconds to import, and what it keeps in these databases is read without it.
        late = is_read(chosen) and (path is None or path.exists())
        client: Any = LateClient(lambda: _client_of(chosen), chosen) if late else None
        return Store.of(chosen, client or _client_of(chosen))


def _client_of(uri: str) -> "MlflowClient":
    from mlflow.tracking import MlflowClient

    quiet()
    if _is_server(uri):
        return MlflowClient(tracking_uri=uri)
    path = sqlite_file(uri)
    folder = FOLDER if path is None else path.parent
    # MLflow makes its tables on first contact; two processes at it would trip over each other.
    with held(short_claims(uri, folder), "tables" if path is None else f"tables-{path.stem}"):
        if path is not None and not path.exists():
            make(path)
            use_wal(path)
        client = MlflowClient(tracking_uri=from_anywhere(uri))
        client.search_experiments(max_results=1)
    return client


def sqlite_file(uri: str) -> Path | None:
    """The file of an SQLite store; None of another kind."""
    return Path(unquote(uri[len(SQLITE) :])) if uri.startswith(SQLITE) else None


def _is_server(uri: str) -> bool:
    return uri.startswith(("http://", "https://"))


def flatten(plain: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as ``section.key`` to text, as MLflow's params want them."""
    flat: dict[str, str] = {}
    for key, value in plain.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = str(without_passwords(value))[:250]
    return flat
