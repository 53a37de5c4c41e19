"""A run's entry in the store: new, taken up again, or finished before."""

import contextlib
import json
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from lit_byz._passwords import without_passwords, without_secrets_of
from lit_byz._warn import warn
from lit_byz.config import plain_yaml
from lit_byz.config.compose import to_plain
from lit_byz.config.identity import Identity
from lit_byz.errors import BadRequest, disk_fails, disk_is_full
from lit_byz.tracking.attempts import store_of
from lit_byz.tracking.claims import Claim, ClaimLost
from lit_byz.tracking.logger import Tracker
from lit_byz.tracking.new_run import Attempt, create
from lit_byz.tracking.patience import Patience, StoreGone, is_away, to_stderr
from lit_byz.tracking.shelf import (
    LAST,
    Shelf,
    bring,
    checkpoint_given,
    newest,
    one_line,
    shelf_of,
    throw_away,
    untracked_checkpoint,
)
from lit_byz.tracking.store import CODE, STATUS, Store

if TYPE_CHECKING:
    from mlflow.entities import Run

    from lit_byz.training import RobustDSGD


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
    claim: Claim | None = None
    shelf: Shelf | None = None
    # Steps whose checkpoints could not be copied to the shelf, since one was.
    _not_copied: list[int] = field(default_factory=list)

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

        batches = module.batches
        if config.tracking.figures:
            self._draw_partition(config, module, folder / "partition.png")
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

    def _draw_partition(self, config: DictConfig, module: "RobustDSGD", path: Path) -> None:
        from lit_byz.data import label_counts
        from lit_byz.data.figure import save_label_figure

        batches = module.batches
        counts = label_counts(batches.parts, batches.images.train_labels, module.classes)
        save_label_figure(counts, f"{config.dataset.name}, {config.partition.name}", path)
        self.tracker.save_file(path, "figures")

    def tag(self, key: str, value: str) -> None:
        if self.store is not None and self.run_id is not None:
            self._check()
            self.store.client.set_tag(self.run_id, key, value)

    def _check(self) -> None:
        """Raise ``ClaimLost`` if another process has taken the run over."""
        if self.claim is not None and self.store is not None:
            self.store.patience.call(self.claim.check)

    def put_aside(self, step: int) -> None:
        """Copy the last checkpoint to the shelf; not now if the store is away.

        A copy that cannot be made is told of, and no obstacle: the run has its own, and the next
        one may succeed.
        """
        if self.shelf is None or self.store is None or self.store.patience.away:
            return
        try:
            if self.claim is not None:
                self.claim.check()
        except Exception as error:
            if not is_away(error):
                raise
            self.store.patience.note(error)
            return
        try:
            self.shelf.put(self.checkpoint, step)
            self._not_copied.clear()
        except Exception as error:  # whatever a kind of storage may raise
            if isinstance(error, BadRequest) or disk_is_full(error) or disk_fails(error):
                raise
            if not self._not_copied:
                where = f"storage.uri = {self.shelf.place}"
                self.tell(f"{where}: checkpoints cannot be copied for now ({one_line(error)})")
            self._not_copied.append(step)

    def close(self, status: str) -> None:
        """Write what waits, then say how the run ended; a finished one needs no checkpoint."""
        self._check()
        self.tracker.settle()
        if self.store is not None and self.run_id is not None:
            self.store.client.set_terminated(self.run_id, status)
        if status != "FINISHED":
            return
        try:
            throw_away(self.checkpoint.parent)
            if self.shelf is not None:
                self.shelf.clear()
        except Exception as error:  # its results are all there: it is finished
            self.tell(f"a finished run's checkpoint cannot be deleted: {error}")

    @property
    def patience(self) -> Patience | None:
        """With the store; None where there is none."""
        return None if self.store is None else self.store.patience

    def gone(self) -> StoreGone:
        """The error of a run that has saved itself because the store is away."""
        assert self.store is not None
        return self.store.patience.gone()

    def tell(self, text: str) -> None:
        """Say something to whoever watches."""
        uri = None if self.store is None else self.store.uri
        tell = to_stderr if self.patience is None else self.patience.tell
        tell(without_secrets_of(text, uri))

    def throw_away(self) -> None:
        """Delete the local checkpoints of a run that is finished, if that can be done."""
        with contextlib.suppress(OSError):
            throw_away(self.checkpoint.parent)

    def fail(self, error: BaseException) -> None:
        """Record that the run ended by an error; nothing here may hide that error."""
        if isinstance(error, ClaimLost | StoreGone):
            return  # it is somebody else's, or goes on from its checkpoint when the store is back
        if self.patience is not None:
            self.patience.hurried = True
        uri = None if self.store is None else self.store.uri
        try:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            self.tag("lit_byz.error", without_secrets_of(text, uri)[:5000])
            interrupted = isinstance(error, KeyboardInterrupt | SystemExit)
            interrupted = interrupted or disk_is_full(error) or disk_fails(error)
            self.tag(STATUS, "interrupted" if interrupted else "failed")
            self.close("KILLED" if interrupted else "FAILED")
        except Exception as second:  # the store itself may be what failed
            if not disk_is_full(second):  # which the error says already
                warn(f"the failure could not be recorded: {without_secrets_of(str(second), uri)}")


def open_run(attempt: Attempt, claim: Claim | None = None) -> TrackedRun:
    """The entry for a run, which this process has the ``claim`` on.

    With ``resume=auto`` a finished run of the same identity is given back as it is, and an
    unfinished one with a checkpoint is gone on with. ``resume=<file>`` goes on from that file.
    """
    config, code = attempt.config, attempt.code
    given = checkpoint_given(config)
    if not config.tracking.enabled:
        own = untracked_checkpoint(code)
        resuming = given is not None
        if given is not None:
            bring(given, own)
        if config.resume == "auto":
            resuming = newest(own.parent, None, to_stderr) is not None
        return TrackedRun(None, None, code, Tracker(), own, resuming, False)
    store = store_of(attempt)
    experiment = store.experiment(config.tracking.experiment)
    if config.resume is not None:
        for run in store.find(experiment, code.digest):
            entry = _known_run(store, run, attempt, given, claim)
            if entry is not None:
                return entry
    entry = _entry(attempt, store, create(store, experiment, attempt), claim)
    if given is not None:
        bring(given, entry.checkpoint)
    return replace(entry, resuming=given is not None)


def _entry(attempt: Attempt, store: Store, run_id: str, claim: Claim | None) -> TrackedRun:
    path = store.folder / "checkpoints" / run_id / LAST
    shelf = shelf_of(attempt.config.storage.uri, store, run_id)
    tracker = Tracker(store, run_id, claim)
    above = attempt.parent_run_id
    return TrackedRun(store, run_id, attempt.code, tracker, path, False, False, above, claim, shelf)


def _known_run(
    store: Store, run: "Run", attempt: Attempt, given: Path | None, claim: Claim | None
) -> TrackedRun | None:
    status = run.info.status
    entry = _entry(attempt, store, run.info.run_id, claim)
    if status == "FINISHED" and given is None:
        entry.throw_away()  # another machine has finished it, or its process was killed just then
        return replace(entry, finished=True)
    found: Path | None = entry.checkpoint
    if given is None:
        found = newest(entry.checkpoint.parent, entry.shelf, entry.tell)
    elif not (entry.checkpoint.exists() and entry.checkpoint.samefile(given)):
        found = None
    if found is None:
        if status == "RUNNING" and given is None:
            # We hold the claim, so nobody runs it: its process was killed before it could save.
            store.client.set_terminated(run.info.run_id, "KILLED")
        if given is None:  # perhaps a first checkpoint for which there was no space
            shutil.rmtree(entry.checkpoint.parent, ignore_errors=True)
        return None
    store.client.update_run(run.info.run_id, status="RUNNING")
    return replace(entry, resuming=True)


def _digest(value: Any) -> str:
    import hashlib

    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:10]
