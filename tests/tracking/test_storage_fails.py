"""Disks and storage that fail for now: no checkpoint is lost, and no run fails over a copy."""

import errno
import os
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import requests
import torch

from lit_byz import train
from lit_byz.errors import BadRequest, StorageAway, disk_fails
from lit_byz.tracking.new_run import Attempt
from lit_byz.tracking.runs import TrackedRun, open_run
from lit_byz.tracking.shelf import LAST, PREVIOUS, newest
from tests.tracking._ledgers import some_points
from tests.tracking._stores import new_store

SECRET = "not-to-be-seen"
ADDRESS = f"http://me:{SECRET}@store:5000/api"


def save(path: Path, step: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"global_step": step}, path)
    return path


def os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    "error",
    [
        *(os_error(each) for each in (errno.ESTALE, errno.EIO, errno.EMFILE, errno.EACCES)),
        MemoryError(),
        RuntimeError("unable to mmap 512 bytes from file <last.ckpt>: Cannot allocate memory (12)"),
    ],
    ids=repr,
)
def test_a_checkpoint_that_cannot_be_read_for_now_stays(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [save(tmp_path / LAST, 20), save(tmp_path / PREVIOUS, 10)]
    before = [path.read_bytes() for path in paths]
    told: list[str] = []

    def fails(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(zipfile, "ZipFile", fails)
        with pytest.raises(type(error)):
            newest(tmp_path, None, told.append)
    assert [path.read_bytes() for path in paths] == before
    assert newest(tmp_path, None, told.append) == tmp_path / LAST
    assert not told


def test_an_index_that_points_nowhere_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although it is the system that complains: of a place before the beginning of the file."""
    save(tmp_path / LAST, 20)
    told: list[str] = []

    def fails(path: Path) -> None:
        raise os_error(errno.EINVAL if path.exists() else errno.ENOENT)

    monkeypatch.setattr(zipfile, "ZipFile", fails)
    assert newest(tmp_path, None, told.append) is None
    assert len(told) == 1
    assert not list(tmp_path.iterdir())


@dataclass
class Broken:
    """A shelf that cannot be reached."""

    error: Exception
    place: str = "s3://bucket"

    def put(self, path: Path, step: int) -> None:
        raise self.error

    def steps(self) -> list[int]:
        raise self.error

    def fetch(self, step: int, path: Path) -> None:
        raise self.error

    def clear(self) -> None:
        raise self.error


def test_without_a_shelf_the_checkpoint_that_is_here_will_do(tmp_path: Path) -> None:
    told: list[str] = []
    save(tmp_path / LAST, 20)
    found = newest(tmp_path, Broken(PermissionError("expired")), told.append)
    assert found == tmp_path / LAST
    assert told == [
        "storage.uri = s3://bucket: cannot be read (expired): the run goes on from the last "
        "checkpoint on this machine"
    ]


def test_without_any_checkpoint_the_run_is_interrupted_not_begun_anew(tmp_path: Path) -> None:
    with pytest.raises(StorageAway, match=r"^storage\.uri = s3://bucket: cannot be read") as raised:
        newest(tmp_path, Broken(PermissionError("expired")), print)
    assert disk_fails(raised.value), "which executors take for an interruption"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def run(tmp_path: Path, told: list[str]) -> TrackedRun:
    """A run that has a checkpoint."""
    (point,) = some_points(tmp_path, ["sf"])
    found = open_run(Attempt(point.config, point.code))
    assert found.store is not None
    found.store.patience.tell = told.append
    save(found.checkpoint, 20)
    return found


@pytest.mark.parametrize(
    "error",
    [
        PermissionError("expired"),
        TimeoutError("no answer"),
        RuntimeError("Could not connect to the endpoint URL"),
        requests.HTTPError(f"413 Client Error: Too Large for url: {ADDRESS}"),
    ],
    ids=repr,
)
def test_a_copy_that_fails_is_told_once(
    run: TrackedRun, told: list[str], error: Exception, tmp_path: Path
) -> None:
    assert run.store is not None
    broken = replace(run, shelf=Broken(error))
    for step in (20, 30):
        broken.put_aside(step)
    (text,) = told
    assert text.startswith("storage.uri = s3://bucket: checkpoints cannot be copied for now (")
    assert SECRET not in text
    assert not run.store.patience.away, "the store itself is well"


@pytest.mark.parametrize("error", [os_error(errno.ENOSPC), BadRequest("storage.uri = x: what?")])
def test_what_does_not_pass_by_itself_is_raised(run: TrackedRun, error: Exception) -> None:
    with pytest.raises(type(error)):
        replace(run, shelf=Broken(error)).put_aside(20)


def test_checkpoints_that_cannot_be_deleted_give_no_password_away(
    run: TrackedRun, told: list[str]
) -> None:
    error = requests.HTTPError(f"405 Client Error: Not Allowed for url: {ADDRESS}")
    replace(run, shelf=Broken(error)).close("FINISHED")
    (text,) = told
    assert text.startswith("a finished run's checkpoint cannot be deleted: 405 ")
    assert SECRET not in text


@pytest.mark.slow
def test_a_run_comes_to_its_end_without_its_storage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    settings = ["model=logreg", "attack=sf", "train.steps=6", "train.eval_every=6"]
    settings += ["train.checkpoint_every=2", f"storage.uri={tmp_path}/file/below"]
    result = train([*settings, f"tracking.uri={new_store(tmp_path)}"])
    assert result.status == "finished"
    assert capsys.readouterr().err.count("checkpoints cannot be copied for now") == 1
