"""Checkpoints: the two newest of a run beside each other, and copies away from their machine."""

import errno
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from omegaconf import DictConfig

from lit_byz._passwords import without_password, without_passwords
from lit_byz._warn import warn
from lit_byz.config.identity import Identity
from lit_byz.errors import BadRequest, StorageAway, disk_fails, disk_is_full
from lit_byz.tracking.patience import StoreGone
from lit_byz.tracking.store import FOLDER, Store

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

LAST, PREVIOUS = "last.ckpt", "previous.ckpt"
KEPT = 2  # checkpoints of a run: the last one may be what a crash has spoilt
ARTIFACTS = "checkpoints"
# What torch says where a file may be whole, and the system cannot open it for now.
NOT_NOW = ("open file failed because of errno", "unable to open file", "unable to mmap")


class Shelf(Protocol):
    """Where copies of a run's checkpoints are, for whichever machine goes on with it."""

    @property
    def place(self) -> str:
        """What ``storage.uri`` says, without passwords."""
        ...

    def put(self, path: Path, step: int) -> None:
        """Keep a checkpoint, and of the older ones the newest."""
        ...

    def steps(self) -> list[int]:
        """The steps of which there are checkpoints."""
        ...

    def fetch(self, step: int, path: Path) -> None: ...

    def clear(self) -> None: ...


@dataclass(frozen=True)
class ArtifactShelf:
    """Checkpoints as artifacts of their run.

    Who goes on with a run waits for a store that is away; who computes it does not.
    """

    store: Store
    run_id: str
    place = "mlflow"

    def put(self, path: Path, step: int) -> None:
        with TemporaryDirectory(dir=path.parent) as folder:
            named = Path(folder) / _name(step)
            _copy(path, named)
            self.store.asked_once.log_artifact(self.run_id, str(named), ARTIFACTS)
        for old in self._steps(self.store.asked_once)[:-KEPT]:
            self._delete(f"{ARTIFACTS}/{_name(old)}")

    def steps(self) -> list[int]:
        return self._steps(self.store.client)

    def _steps(self, client: "MlflowClient") -> list[int]:
        return _steps(item.path for item in client.list_artifacts(self.run_id, ARTIFACTS))

    def fetch(self, step: int, path: Path) -> None:
        with TemporaryDirectory(dir=path.parent) as folder:
            wanted = f"{ARTIFACTS}/{_name(step)}"
            got = self.store.client.download_artifacts(self.run_id, wanted, folder)
            Path(got).replace(path)

    def clear(self) -> None:
        for step in self._steps(self.store.asked_once):
            self._delete(f"{ARTIFACTS}/{_name(step)}")

    def _delete(self, path: str) -> None:
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        place = self.store.asked_once.get_run(self.run_id).info.artifact_uri
        kept = get_artifact_repository(str(place), tracking_uri=self.store.uri)
        try:
            kept.delete_artifacts(path)
        except NotImplementedError:  # some of MLflow's kinds of storage cannot
            _say_that_all_stay(str(without_passwords(str(place))))


@cache
def _say_that_all_stay(place: str) -> None:
    """Once for each run: a disk that fills up in silence is worse than a line."""
    warn(
        f"{place}: such storage deletes nothing, so that every checkpoint of the run stays there; "
        "storage.uri keeps checkpoints elsewhere"
    )


@dataclass(frozen=True)
class FolderShelf:
    """Checkpoints in a folder of any kind that fsspec knows, one folder for each run."""

    uri: str
    run_id: str

    @property
    def place(self) -> str:
        return str(without_passwords(self.uri))

    def _place(self) -> tuple[Any, str]:
        import fsspec

        try:
            files, root = fsspec.core.url_to_fs(self.uri)
        except (ValueError, ImportError) as error:
            raise BadRequest(f"storage.uri = {self.place}: {error}") from error
        return files, f"{root.rstrip('/')}/{self.run_id}"

    def put(self, path: Path, step: int) -> None:
        files, folder = self._place()
        files.makedirs(folder, exist_ok=True)
        # Under its name only when it is all there.
        files.put_file(str(path), f"{folder}/{_name(step)}.part")
        files.mv(f"{folder}/{_name(step)}.part", f"{folder}/{_name(step)}")
        for old in self.steps()[:-KEPT]:
            files.rm(f"{folder}/{_name(old)}")

    def steps(self) -> list[int]:
        files, folder = self._place()
        if not files.exists(folder):
            return []
        files.invalidate_cache()
        return _steps(files.ls(folder, detail=False))

    def fetch(self, step: int, path: Path) -> None:
        files, folder = self._place()
        files.get_file(f"{folder}/{_name(step)}", str(path))

    def clear(self) -> None:
        files, folder = self._place()
        if files.exists(folder):
            files.rm(folder, recursive=True)


def _name(step: int) -> str:
    return f"{step:09d}.ckpt"


def _steps(names: Any) -> list[int]:
    stems = (Path(str(name)) for name in names)
    return sorted(int(p.stem) for p in stems if p.suffix == ".ckpt" and p.stem.isdigit())


def _copy(path: Path, to: Path) -> None:
    try:
        os.link(path, to)
    except OSError:  # not every file system can
        shutil.copyfile(path, to)


def shelf_of(uri: str | None, store: Store, run_id: str) -> Shelf | None:
    """The shelf that ``storage.uri`` asks for."""
    if uri is None:
        return None
    return ArtifactShelf(store, run_id) if uri == "mlflow" else FolderShelf(uri, run_id)


def newest(folder: Path, shelf: Shelf | None, tell: Callable[[str], None]) -> Path | None:
    """The newest whole checkpoint of a run, here or on its shelf, as ``last.ckpt`` in ``folder``.

    One that is damaged is told of and thrown away, and the one before it is taken. Where the shelf
    cannot be reached, the one that is here will do: the run comes to the same end from any of them.
    """
    last, step = folder / LAST, -1
    for path in (last, folder / PREVIOUS):
        found = _step_of(path, tell)
        if found is not None:
            path.replace(last)  # the one before it, if there is one, is older
            step = found
            break
    here = last if step >= 0 else None
    if shelf is None:
        return here
    try:
        return last if _fetch_newer(shelf, step, folder, tell) else here
    except (BadRequest, StoreGone):
        raise
    except Exception as error:  # whatever a kind of storage may raise
        text = f"storage.uri = {shelf.place}: cannot be read ({one_line(error)})"
        if here is None or disk_is_full(error) or disk_fails(error):
            raise StorageAway(text) from error
        tell(f"{text}: the run goes on from the last checkpoint on this machine")
        return here


def _fetch_newer(shelf: Shelf, step: int, folder: Path, tell: Callable[[str], None]) -> bool:
    """Bring the newest whole checkpoint beyond ``step`` from the shelf, if it has any."""
    for kept in reversed(shelf.steps()):
        if kept <= step:
            break
        folder.mkdir(parents=True, exist_ok=True)
        fetched = folder / "fetched.part"
        shelf.fetch(kept, fetched)
        if _step_of(fetched, tell) is not None:
            fetched.replace(folder / LAST)
            return True
    return False


def _step_of(path: Path, tell: Callable[[str], None]) -> int | None:
    """The step of a checkpoint; None if there is none, or none that is whole."""
    import torch

    try:
        with zipfile.ZipFile(path) as parts:
            spoilt = parts.testzip()  # torch itself does not look at the sums
        if spoilt is not None:
            raise zipfile.BadZipFile(f"its part {spoilt} is not what was written")
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        return int(content["global_step"])
    except FileNotFoundError:
        return None
    except Exception as error:  # whatever a damaged file makes zipfile and torch raise
        if not _is_damage(error):
            raise
        reason = one_line(error)
        tell(f"checkpoint {path} is damaged ({reason}): it goes on from the one before it, if any")
        path.unlink(missing_ok=True)
        return None


def _is_damage(error: Exception) -> bool:
    """Whether the file itself is wrong, and not the disk or the machine, for now."""
    if isinstance(error, OSError):
        return error.errno in (None, errno.EINVAL)  # for a place before a file's beginning
    return not isinstance(error, MemoryError) and not any(t in str(error) for t in NOT_NOW)


def one_line(error: BaseException) -> str:
    """What an error says, in a line that is not long, without passwords."""
    return " ".join(without_password(str(error)).split())[:120] or type(error).__name__


def untracked_checkpoint(code: Identity) -> Path:
    """Where a run without tracking saves itself."""
    return FOLDER / "checkpoints" / code.digest[:20] / LAST


def checkpoint_given(config: DictConfig) -> Path | None:
    """The file that ``resume=<file>`` names, if it does."""
    if config.resume in (None, "auto"):
        return None
    given = Path(config.resume)
    if not given.is_file():
        raise BadRequest(f"resume = {config.resume}: there is no such file; or say resume=auto")
    return given


def bring(given: Path, own: Path) -> None:
    """Copy a checkpoint that was given to where a run keeps its own; the given one stays."""
    own.parent.mkdir(parents=True, exist_ok=True)
    if not (own.exists() and own.samefile(given)):
        shutil.copyfile(given, own)


def throw_away(folder: Path) -> None:
    """Delete a run's local checkpoints, and whatever a killed process has left beside them."""
    if folder.exists():
        shutil.rmtree(folder)
