"""Checkpoints: which one a run goes on from."""

import warnings
from pathlib import Path

import pytest
import torch

from lit_byz.errors import BadRequest
from lit_byz.tracking import Store, open_store
from lit_byz.tracking.shelf import LAST, PREVIOUS, FolderShelf, Shelf, newest, shelf_of, throw_away
from tests.tracking._stores import new_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(new_store(tmp_path / "store"))


@pytest.fixture(params=["mlflow", "folder", "memory"])
def shelf(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> Shelf:
    run_id = str(store.client.create_run(store.experiment("tests")).info.run_id)
    uri = {"mlflow": "mlflow", "folder": str(tmp_path / "shelf"), "memory": f"memory://{run_id}"}
    found = shelf_of(uri[request.param], store, run_id)
    assert found is not None
    return found


def save(path: Path, step: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"global_step": step, "state": torch.arange(5000.0)}, path)
    return path


def step_of(path: Path | None) -> int:
    assert path is not None
    return int(torch.load(path, weights_only=True)["global_step"])


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def test_the_last_one_is_taken(tmp_path: Path) -> None:
    told: list[str] = []
    assert newest(tmp_path, None, told.append) is None
    save(tmp_path / PREVIOUS, 10)
    save(tmp_path / LAST, 20)
    assert step_of(newest(tmp_path, None, told.append)) == 20
    assert not told


@pytest.mark.parametrize("damage", [cut, flip, Path.unlink])
def test_else_the_one_before(tmp_path: Path, damage: object) -> None:
    told: list[str] = []
    save(tmp_path / PREVIOUS, 10)
    damage(save(tmp_path / LAST, 20))  # type: ignore[operator]
    found = newest(tmp_path, None, told.append)
    assert found == tmp_path / LAST, "so that the next one does not push out the only good one"
    assert step_of(found) == 10
    assert len(told) == (damage is not Path.unlink)
    if told:
        assert told[0].startswith(f"checkpoint {tmp_path / LAST} is damaged (")


def test_with_none_left_there_is_none(tmp_path: Path) -> None:
    told: list[str] = []
    cut(save(tmp_path / LAST, 20))
    flip(save(tmp_path / PREVIOUS, 10))
    assert newest(tmp_path, None, told.append) is None
    assert len(told) == 2
    assert not list(tmp_path.iterdir())


def test_a_shelf_keeps_two(tmp_path: Path, shelf: Shelf) -> None:
    assert shelf.steps() == []
    for step in (10, 20, 30):
        shelf.put(save(tmp_path / LAST, step), step)
    assert shelf.steps() == [20, 30]
    shelf.clear()
    assert shelf.steps() == []


def test_another_machine_goes_on(tmp_path: Path, shelf: Shelf) -> None:
    for step in (10, 20):
        shelf.put(save(tmp_path / "here" / LAST, step), step)
    told: list[str] = []
    elsewhere = tmp_path / "elsewhere"
    assert step_of(newest(elsewhere, shelf, told.append)) == 20
    save(elsewhere / LAST, 30)
    assert step_of(newest(elsewhere, shelf, told.append)) == 30, "newer than what is on the shelf"
    assert not told


def test_one_that_came_damaged(tmp_path: Path, shelf: Shelf) -> None:
    shelf.put(save(tmp_path / "here" / LAST, 10), 10)
    bad = save(tmp_path / "here" / LAST, 20)
    flip(bad)
    shelf.put(bad, 20)
    told: list[str] = []
    assert step_of(newest(tmp_path / "elsewhere", shelf, told.append)) == 10
    assert len(told) == 1


def test_places_that_there_are_not(store: Store) -> None:
    assert shelf_of(None, store, "1") is None
    with pytest.raises(BadRequest, match=r"storage\.uri = nowhere://x"):
        FolderShelf("nowhere://x", "1").steps()


def test_throwing_away(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    save(folder / LAST, 1)
    save(folder / PREVIOUS, 1)
    throw_away(folder)
    assert not folder.exists()


def test_storage_that_deletes_nothing_is_told_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checkpoints pile up; the newest is found all the same."""
    from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

    def delete(self: LocalArtifactRepository, artifact_path: str | None = None) -> None:
        raise NotImplementedError

    monkeypatch.setattr(LocalArtifactRepository, "delete_artifacts", delete)
    run_id = str(store.client.create_run(store.experiment("tests")).info.run_id)
    shelf = shelf_of("mlflow", store, run_id)
    assert shelf is not None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for step in (1, 2, 3, 4, 5):
            shelf.put(save(tmp_path / LAST, step), step)
        shelf.clear()
    said = [str(each.message) for each in told if "deletes nothing" in str(each.message)]
    assert len(said) == 1
    assert said[0].endswith("storage.uri keeps checkpoints elsewhere")
    assert shelf.steps()[-1] == 5
