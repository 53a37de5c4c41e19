"""Data where the user's cache folder cannot be written to: kept among temporary files instead."""

import contextlib
import os
import stat
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.testing  # now: another user may not be able to read it
import pytest

from lit_byz._cache import spare_folder, tell_without_cache
from lit_byz.data import data_root
from tests.data._tiny import TRAIN, Tiny

NOBODY = 65534


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that every user can read, for temporary files, and no data of this user."""
    for name in ("LIT_BYZ_DATA", "LIT_BYZ_CACHE", "XDG_CACHE_HOME", "LIT_BYZ_CACHE_TOLD"):
        monkeypatch.delenv(name, raising=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        monkeypatch.setenv("HOME", str(folder / "home"))
        yield folder
    os.environ.pop("LIT_BYZ_CACHE_TOLD", None)


@contextlib.contextmanager
def somebody() -> Iterator[int]:
    """Another user than root, whom no permissions would bind."""
    if os.geteuid() != 0:
        yield os.geteuid()
        return
    os.seteuid(NOBODY)
    try:
        yield NOBODY
    finally:
        os.seteuid(0)


def test_no_home(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", os.devnull)
    with pytest.warns(UserWarning, match=r"cannot be made: data is kept in .*/data; ") as told:
        root = data_root()
    assert len(told) == 1
    assert root == place / f"lit_byz-{os.geteuid()}" / "data"
    assert stat.S_IMODE(root.parent.stat().st_mode) == 0o700
    tell_without_cache_once()
    assert Tiny().load().train_size == TRAIN
    monkeypatch.setenv("TINY_CLOSED", "1")
    assert Tiny().load().train_size == TRAIN  # from there


def tell_without_cache_once() -> None:
    with pytest.warns(UserWarning, match="the cache folder cannot be written"):
        tell_without_cache()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tell_without_cache()


def test_a_folder_to_read_only(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIT_BYZ_CACHE", str(place / "cache"))
    root = data_root()
    for folder in (root, root.parent):
        folder.chmod(0o555)
    with somebody():
        tell_without_cache_once()
        before = Tiny().read(None).train_images
        assert "lit_byz-" in str(Tiny().fetch())
    for folder in (root, root.parent):
        folder.chmod(0o755)
    # What is there already is taken from there.
    Tiny().fetch()
    for folder in (root, root.parent):
        folder.chmod(0o555)
    monkeypatch.setenv("TINY_CLOSED", "1")
    with somebody():
        assert str(root) in str(Tiny().fetch())
        np.testing.assert_array_equal(Tiny().read(None).train_images, before)


def test_a_folder_that_another_user_has_made(place: Path) -> None:
    with somebody() as number:
        pass
    if os.geteuid() != 0:
        (place / f"lit_byz-{number}").symlink_to(place)
    else:
        (place / f"lit_byz-{number}").mkdir(mode=0o777)
    with somebody(), pytest.raises(PermissionError, match="belongs to another user"):
        spare_folder("data")
