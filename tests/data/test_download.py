"""Fetching: verified, atomic, alone; nothing half-finished is taken for data."""

import gzip
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from lit_byz.data import data_root
from lit_byz.errors import RunFailed
from tests.cli import _kills
from tests.data._tiny import CONTENTS, TEST, TRAIN, Tiny, place_by_hand

REPOSITORY = Path(__file__).parents[2]
FETCH = "from tests.data._tiny import Tiny; print(Tiny().fetch())"


@pytest.fixture
def folder() -> Path:
    return data_root() / Tiny().name


def fetching(**environment: str) -> "AbstractContextManager[subprocess.Popen[str]]":
    return _kills.started(
        [sys.executable, "-c", FETCH],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def damage(path: Path, place: int = -5) -> None:
    """Change one byte and hide it: size and time of change stay the same."""
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def expected_pixels() -> np.ndarray:
    content = CONTENTS["train-images-idx3-ubyte"]
    return np.frombuffer(content, np.uint8, offset=16).reshape(TRAIN, 1, 4, 4)


def test_first_use_fetches_and_second_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    images = Tiny().load()
    assert (images.train_size, images.test_size) == (TRAIN, TEST)
    monkeypatch.setenv("TINY_CLOSED", "1")
    np.testing.assert_array_equal(Tiny().read(None).train_images, expected_pixels())
    assert "are there and verified" in str(Tiny().fetch())


def test_files_are_not_kept_and_nothing_is_left_over(folder: Path) -> None:
    assert "fetched and verified" in str(Tiny().fetch())
    arrays = {f"{part}_{kind}.npy" for part in ("train", "test") for kind in ("images", "labels")}
    assert {path.name for path in folder.iterdir()} == {*arrays, "manifest.json"}
    assert {path.name for path in data_root().iterdir()} == {folder.name, f".{folder.name}.lock"}


@pytest.mark.parametrize("array", ["train_images", "train_labels", "test_images", "test_labels"])
def test_fetch_repairs_a_changed_byte(folder: Path, array: str) -> None:
    Tiny().fetch()
    damage(folder / f"{array}.npy")
    report = str(Tiny().fetch())
    assert f"repaired ({array}.npy differs from its checksum)" in report
    np.testing.assert_array_equal(Tiny().read(None).train_images, expected_pixels())
    assert "are there" in str(Tiny().fetch())


def test_load_repairs_a_truncated_file(folder: Path) -> None:
    Tiny().fetch()
    path = folder / "train_images.npy"
    path.write_bytes(path.read_bytes()[:-1])
    np.testing.assert_array_equal(Tiny().read(None).train_images, expected_pixels())


def test_load_repairs_a_file_changed_in_place(folder: Path) -> None:
    Tiny().fetch()
    path = folder / "train_images.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, (0, 0))
    np.testing.assert_array_equal(Tiny().read(None).train_images, expected_pixels())


@pytest.mark.parametrize("text", ["", "{}", "[1]", "no json", '{"format": 1, "arrays": {}}'])
def test_a_spoilt_manifest_is_replaced(folder: Path, text: str) -> None:
    Tiny().fetch()
    (folder / "manifest.json").write_text(text)
    assert "repaired (no valid manifest)" in str(Tiny().fetch())
    assert "are there" in str(Tiny().fetch())


def test_a_copied_cache_is_taken_after_a_look_at_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Tiny().fetch()
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    monkeypatch.setenv("TINY_CLOSED", "1")
    Tiny().load()
    Tiny().load()


def test_a_cache_made_from_other_files_is_replaced(folder: Path) -> None:
    Tiny().fetch()
    manifest = folder / "manifest.json"
    digest = next(iter(Tiny.files.values()))
    manifest.write_text(manifest.read_text().replace(digest, "0" * 64))
    assert "repaired" in str(Tiny().fetch())


@pytest.mark.parametrize("form", ["plain", "gz", "tar.gz", "below"])
def test_files_put_by_hand(
    folder: Path, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_CLOSED", "1")
    place_by_hand(tmp_path / "files")
    folder.mkdir(parents=True)
    for path in (tmp_path / "files").iterdir():
        if form == "plain":
            path.rename(folder / path.name)
        elif form == "gz":
            (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        elif form == "below":
            (folder / "raw").mkdir(exist_ok=True)
            path.rename(folder / "raw" / path.name)
    if form == "tar.gz":
        with tarfile.open(folder / "all.tar.gz", "w:gz") as tar:
            tar.add(tmp_path / "files", "inside")
    placed = sorted(folder.rglob("*"))
    assert f"from files in {folder}" in str(Tiny().fetch())
    assert all(path.exists() for path in placed)
    np.testing.assert_array_equal(Tiny().read(None).train_images, expected_pixels())


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("form", ["", ".gz", ".tar.gz"])
def test_a_file_put_by_hand_that_was_cut(
    folder: Path, form: str, kept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    place_by_hand(folder)
    whole = folder / "train-images-idx3-ubyte"
    content = whole.read_bytes()
    if form == ".gz":
        content = gzip.compress(content)
    elif form == ".tar.gz":
        with tarfile.open(folder / "all.tar.gz", "w:gz") as tar:
            tar.add(whole, whole.name)
        content = (folder / "all.tar.gz").read_bytes()
    whole.unlink()
    cut = folder / ("all.tar.gz" if form == ".tar.gz" else whole.name + form)
    cut.write_bytes(content[: int(kept * len(content))])
    monkeypatch.setenv("TINY_CLOSED", "1")
    with pytest.raises(
        RunFailed, match=f"files in {folder}: ({cut.name}|{whole.name}) "
    ) as failure:
        Tiny().load()
    assert "\n" not in str(failure.value)
    monkeypatch.delenv("TINY_CLOSED")
    np.testing.assert_array_equal(Tiny().read(None).train_images, expected_pixels())


def test_an_explicit_root_wins(tmp_path: Path) -> None:
    Tiny().load(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / Tiny().name / "manifest.json").exists()
    assert not data_root().exists()


def test_default_root_is_a_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIT_BYZ_DATA")
    monkeypatch.delenv("LIT_BYZ_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_root() == tmp_path / "lit_byz" / "data"


def place_wrong_files(folder: Path) -> None:
    place_by_hand(folder)
    (folder / "t10k-labels-idx1-ubyte").write_bytes(b"other")


def test_wrong_content_by_hand_is_passed_over_for_a_source(folder: Path) -> None:
    place_wrong_files(folder)
    assert "from the shelf" in str(Tiny().fetch())


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda folder: None, "no data files"),
        (place_wrong_files, "wrong content (SHA-256"),
        (
            lambda folder: (folder / "train-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8bjunk"),
            "train-images-idx3-ubyte.gz cannot be unpacked",
        ),
        (lambda folder: (folder / "x.tar.gz").write_bytes(b"junk"), "x.tar.gz cannot be unpacked"),
    ],
)
def test_no_source_is_one_line_that_says_all(
    folder: Path, spoil: Callable[[Path], object], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_CLOSED", "1")
    folder.mkdir(parents=True)
    spoil(folder)
    with pytest.raises(RunFailed) as failure:
        Tiny().load()
    message = str(failure.value)
    assert "\n" not in message
    for part in (f"files in {folder}", reason, "the shelf: it is closed", "by hand: put train-"):
        assert part in message
    assert not (folder / "manifest.json").exists()


def test_damage_without_a_source_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Tiny().fetch()
    damage(folder / "test_images.npy")
    monkeypatch.setenv("TINY_CLOSED", "1")
    with pytest.raises(RunFailed, match=r"is damaged \(test_images.npy differs .* could not be"):
        Tiny().fetch()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailed, match=r"cannot be stored in .*LIT_BYZ_DATA"):
        Tiny().load(tmp_path / "file")


@pytest.mark.slow
def test_two_processes_at_once_download_once(tmp_path: Path) -> None:
    with fetching(TINY_GATE=str(tmp_path)) as first:
        _kills.wait_until("it downloads", (tmp_path / "log").exists, 120)
        with fetching(TINY_GATE=str(tmp_path)) as second:
            assert second.stderr is not None
            assert "another process is fetching it" in second.stderr.readline()
            (tmp_path / "open").touch()
            results = [process.communicate(timeout=120) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], results
    assert all("verified" in output for output, _ in results)
    assert (tmp_path / "log").read_text() == "download\n"
    np.testing.assert_array_equal(Tiny().read(None).train_images, expected_pixels())


def test_a_killed_process_leaves_nothing_that_counts(tmp_path: Path, folder: Path) -> None:
    with fetching(TINY_GATE=str(tmp_path)) as process:
        _kills.wait_until("it downloads", (tmp_path / "log").exists, 120)
        assert list(data_root().glob(".partial-*"))
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    assert not folder.exists()
    assert "fetched and verified" in str(Tiny().fetch())
    assert not list(data_root().glob(".partial-*"))
