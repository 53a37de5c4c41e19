"""A run's entry in the store: new, taken up again, or finished before."""

import contextlib
import json
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from lit_byz._machine import machine
from lit_byz._passwords import without_passwords, without_secrets_of
from lit_byz.config import plain_yaml
from lit_byz.config.compose import to_plain
from lit_byz.config.identity import Identity, environment
from lit_byz.errors import BadRequest
from lit_byz.tracking.logger import Tracker
from lit_byz.tracking.names import label
from lit_byz.tracking.store import (
    CODE,
    ENVIRONMENT,
    FOLDER,
    IDENTITY,
    KIND,
    MACHINE,
    PARENT,
    SETTINGS,
    Store,
    claim_on,
    open_store,
)

if TYPE_CHECKING:
    from mlflow.entities import Run

    from lit_byz.training import RobustDSGD

PACKAGES = ("lit_byz", "torch", "torchvision", "lightning", "mlflow", "numpy", "omegaconf")


@dataclass(frozen=True)
class TrackedRun:
    """Where one run is recorded; without tracking, only its checkpoint has a place."""

    store: Store | None
    run_id: str | None
    code: Identity
    tracker: Tracker
    checkpoint: Path
    resuming: bool
    finished: bool
    parent_run_id: str | None = None

    @property
    def identity(self) -> str:
        return self.code.digest

    def describe(self, config: DictConfig, module: "RobustDSGD") -> None:
        """Record what the run is made of: once, when it is new."""
        if self.store is None or self.run_id is None or self.resuming:
            return
        self.tracker.write_settings({**to_plain(config), CODE: self.code.code})
        with TemporaryDirectory() as folder:
            settings = Path(folder) / "config.yaml"
            settings.write_text(plain_yaml.write(without_passwords(to_plain(config))))
            self.tracker.save_file(settings)
            self._describe_data(config, module, Path(folder))
        if any("BatchNorm" in type(layer).__name__ for layer in module.modules()):
            self.tag("lit_byz.batch_norm", "own batch per worker; running: mean of honest workers")

    def _describe_data(self, config: DictConfig, module: "RobustDSGD", folder: Path) -> None:
        from mlflow.entities import Dataset, DatasetInput

        from lit_byz.data import label_counts
        from lit_byz.data.figure import save_label_figure

        batches = module.batches
        labels = batches.images.train_labels
        counts = label_counts(batches.parts, labels, module.classes)
        path = folder / "partition.png"
        save_label_figure(counts, f"{config.dataset.name}, {config.partition.name}", path)
        self.tracker.save_file(path, "figures")
        profile = {"train": batches.images.train_size, "test": batches.images.test_size}
        dataset = Dataset(
            name=config.dataset.name,
            digest=_digest(to_plain(config)["dataset"]),
            source_type="lit_byz",
            source=json.dumps({"dataset": to_plain(config)["dataset"]}),
            profile=json.dumps({**profile, "partition": to_plain(config)["partition"]}),
        )
        assert self.store is not None
        assert self.run_id is not None
        # MLflow keeps one entry for a data set. Two processes that make it at once trip over each
        # other; the claim is on this entry, so that only those wait who would.
        with self.store.alone(f"dataset-{dataset.name}-{dataset.digest}"):
            self.store.client.log_inputs(self.run_id, [DatasetInput(dataset, [])])

    def tag(self, key: str, value: str) -> None:
        if self.store is not None and self.run_id is not None:
            self.store.client.set_tag(self.run_id, key, value)

    def close(self, status: str) -> None:
        """Write what waits, then say how the run ended; a finished one needs no checkpoint."""
        self.tracker.save()
        if self.store is not None and self.run_id is not None:
            self.store.client.set_terminated(self.run_id, status)
        if status == "FINISHED":
            # A process that was killed while it saved has left a part of a checkpoint.
            for path in (self.checkpoint, self.checkpoint.with_suffix(".part")):
                path.unlink(missing_ok=True)
            if self.checkpoint.parent.exists() and not any(self.checkpoint.parent.iterdir()):
                self.checkpoint.parent.rmdir()

    def fail(self, error: BaseException) -> None:
        """Record that the run ended by an error; nothing here may hide that error."""
        try:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            uri = None if self.store is None else self.store.uri
            self.tag("lit_byz.error", without_secrets_of(text, uri)[:5000])
            interrupted = isinstance(error, KeyboardInterrupt | SystemExit)
            self.close("KILLED" if interrupted else "FAILED")
        except Exception as second:  # the store itself may be what failed
            warnings.warn(f"the failure could not be recorded: {second}", stacklevel=2)


@dataclass(frozen=True)
class Attempt:
    """What a run is to be: its config, identity, and the run that it shall lie below."""

    config: DictConfig
    code: Identity
    parent_run_id: str | None = None

    @property
    def identity(self) -> str:
        return self.code.digest


def open_run(attempt: Attempt) -> TrackedRun:
    """The entry for a run.

    With ``resume=auto`` a finished run of the same identity is given back as it is, and an
    unfinished one with a checkpoint is gone on with. ``resume=<file>`` goes on from that file.
    """
    config, code = attempt.config, attempt.code
    given = checkpoint_given(config)
    if not config.tracking.enabled:
        checkpoint = given or FOLDER / "checkpoints" / code.digest[:20] / "last.ckpt"
        resuming = config.resume is not None and checkpoint.exists()
        return TrackedRun(None, None, code, Tracker(), checkpoint, resuming, False)
    store = open_store(config.tracking.uri)
    experiment = store.experiment(config.tracking.experiment)
    if config.resume is not None:
        for run in store.find(experiment, code.digest):
            entry = _known_run(store, run, code, given)
            if entry is not None:
                return replace(entry, parent_run_id=attempt.parent_run_id)
    run_id = _create(store, experiment, attempt)
    path = _checkpoint_of(store, run_id)
    if given is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(given.read_bytes())
    tracker = Tracker(store, run_id)
    parent = attempt.parent_run_id
    return TrackedRun(store, run_id, code, tracker, path, given is not None, False, parent)


def checkpoint_given(config: DictConfig) -> Path | None:
    """The file that ``resume=<file>`` names, if it does."""
    if config.resume in (None, "auto"):
        return None
    given = Path(config.resume)
    if not given.is_file():
        raise BadRequest(f"resume = {config.resume}: there is no such file; or say resume=auto")
    return given


@contextlib.contextmanager
def claimed(attempt: Attempt) -> Iterator[None]:
    """Hold a run of ``resume=auto`` for this process alone; wait while another one computes it."""
    config = attempt.config
    if config.resume != "auto" or not config.tracking.enabled:
        yield
        return
    with open_store(config.tracking.uri).alone(claim_on(attempt.identity)):
        yield


def computed_otherwise(attempt: Attempt) -> list[str]:
    """The code of runs with the same settings that other code has computed."""
    config = attempt.config
    if not config.tracking.enabled:
        return []
    store = open_store(config.tracking.uri)
    experiment = store.experiment(config.tracking.experiment)
    runs = store.search(experiment, f"tags.`{SETTINGS}` = '{attempt.code.settings}'")
    codes = [run.data.tags.get(CODE, "") for run in runs]
    return [code for code in dict.fromkeys(codes) if code != attempt.code.code]


def _known_run(store: Store, run: "Run", code: Identity, given: Path | None) -> TrackedRun | None:
    run_id, status = run.info.run_id, run.info.status
    checkpoint = _checkpoint_of(store, run_id)
    tracker = Tracker(store, run_id)
    if status == "FINISHED" and given is None:
        return TrackedRun(store, run_id, code, tracker, checkpoint, False, True)
    if not checkpoint.exists() or (given is not None and not checkpoint.samefile(given)):
        if status == "RUNNING" and given is None:
            # We hold the claim, so nobody runs it: its process was killed before it could save.
            store.client.set_terminated(run_id, "KILLED")
            shutil.rmtree(checkpoint.parent, ignore_errors=True)
        return None
    store.client.update_run(run_id, status="RUNNING")
    return TrackedRun(store, run_id, code, tracker, checkpoint, True, False)


def _checkpoint_of(store: Store, run_id: str) -> Path:
    return store.folder / "checkpoints" / run_id / "last.ckpt"


def _create(store: Store, experiment: str, attempt: Attempt) -> str:
    config = attempt.config
    tags = {
        IDENTITY: attempt.identity,
        SETTINGS: attempt.code.settings,
        CODE: attempt.code.code,
        ENVIRONMENT: environment(to_plain(config)),
        KIND: "run",
        "mlflow.source.name": Path(sys.argv[0]).name,
        "mlflow.source.type": "LOCAL",
        "lit_byz.versions": json.dumps({name: _version(name) for name in PACKAGES}),
        MACHINE: machine(),
    }
    commit = git_commit()
    if commit is not None:
        tags["mlflow.source.git.commit"] = commit
    if attempt.parent_run_id is not None:
        tags[PARENT] = attempt.parent_run_id
    now = int(time.time() * 1000)
    created = store.client.create_run(experiment, start_time=now, tags=tags, run_name=label(config))
    return str(created.info.run_id)


def git_commit() -> str | None:
    """The commit of the source that runs, if it is a checkout; a + marks uncommitted changes."""
    here = Path(__file__).parent

    def ask(*words: str) -> str | None:
        command = ["git", "-C", str(here), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = ask("rev-parse", "HEAD")
    return f"{commit}+" if commit and ask("status", "--porcelain", "-uno") else commit


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _digest(value: Any) -> str:
    import hashlib

    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:10]
