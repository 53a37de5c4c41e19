"""Checkpoints: the two newest of a run beside each other, and copies away from their machine."""

import contextlib
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from lit_byz.errors import BadRequest
from lit_byz.tracking.store import Store

LAST, PREVIOUS = "last.ckpt", "previous.ckpt"
KEPT = 2  # checkpoints of a run: the last one may be what a crash has spoilt
ARTIFACTS = "checkpoints"


class Shelf(Protocol):
    """Where copies of a run's checkpoints are, for whichever machine goes on with it."""

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
    """Checkpoints as artifacts of their run."""

    store: Store
    run_id: str

    def put(self, path: Path, step: int) -> None:
        with TemporaryDirectory(dir=path.parent) as folder:
            named = Path(folder) / _name(step)
            _copy(path, named)
            self.store.asked_once.log_artifact(self.run_id, str(named), ARTIFACTS)
        for old in self.steps()[:-KEPT]:
            self._delete(f"{ARTIFACTS}/{_name(old)}")

    def steps(self) -> list[int]:
        found = self.store.asked_once.list_artifacts(self.run_id, ARTIFACTS)
        return _steps(item.path for item in found)

    def fetch(self, step: int, path: Path) -> None:
        with TemporaryDirectory(dir=path.parent) as folder:
            wanted = f"{ARTIFACTS}/{_name(step)}"
            got = self.store.asked_once.download_artifacts(self.run_id, wanted, folder)
            Path(got).replace(path)

    def clear(self) -> None:
        for step in self.steps():
            self._delete(f"{ARTIFACTS}/{_name(step)}")

    def _delete(self, path: str) -> None:
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        place = self.store.asked_once.get_run(self.run_id).info.artifact_uri
        kept = get_artifact_repository(str(place), tracking_uri=self.store.uri)
        with contextlib.suppress(NotImplementedError):  # some kinds of storage cannot
            kept.delete_artifacts(path)


@dataclass(frozen=True)
class FolderShelf:
    """Checkpoints in a folder of any kind that fsspec knows, one folder for each run."""

    uri: str
    run_id: str

    def _place(self) -> tuple[Any, str]:
        import fsspec

        try:
            files, root = fsspec.core.url_to_fs(self.uri)
        except (ValueError, ImportError, OSError) as error:
            raise BadRequest(f"storage.uri = {self.uri}: {error}") from error
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

    One that is damaged is told of and thrown away, and the one before it is taken.
    """
    last, step = folder / LAST, -1
    for path in (last, folder / PREVIOUS):
        found = _step_of(path, tell)
        if found is not None:
            path.replace(last)  # the one before it, if there is one, is older
            step = found
            break
    if shelf is None:
        return last if step >= 0 else None
    for kept in reversed(shelf.steps()):
        if kept <= step:
            break
        folder.mkdir(parents=True, exist_ok=True)
        fetched = folder / "fetched.part"
        shelf.fetch(kept, fetched)
        if _step_of(fetched, tell) is not None:
            fetched.replace(last)
            return last
    return last if step >= 0 else None


def _step_of(path: Path, tell: Callable[[str], None]) -> int | None:
    """The step of a checkpoint; None if there is none, or none that is whole."""
    import torch

    if not path.exists():
        return None
    try:
        with zipfile.ZipFile(path) as parts:
            spoilt = parts.testzip()  # torch itself does not look at the sums
        if spoilt is not None:
            raise zipfile.BadZipFile(f"its part {spoilt} is not what was written")
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        return int(content["global_step"])
    except Exception as error:  # whatever a damaged file makes zipfile and torch raise
        reason = " ".join(str(error).split())[:120]
        tell(f"checkpoint {path} is damaged ({reason}): it goes on from the one before it, if any")
        path.unlink(missing_ok=True)
        return None


def throw_away(folder: Path) -> None:
    """Delete a run's local checkpoints, and parts of some that a killed process has left."""
    for name in (LAST, PREVIOUS, "last.part", "fetched.part"):
        (folder / name).unlink(missing_ok=True)
    if folder.exists() and not any(folder.iterdir()):
        folder.rmdir()
