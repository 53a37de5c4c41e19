"""Where the cache is: where the user says, else where the system keeps caches."""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import pytest

from lit_byz._cache import cache_folder, place_matplotlib, private_folder


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIT_BYZ_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_the_user_chooses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIT_BYZ_CACHE", str(tmp_path / "chosen"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert cache_folder("kernels") == tmp_path / "chosen" / "kernels"
    assert (tmp_path / "chosen" / "kernels").is_dir()
    assert not (tmp_path / "other").exists()


def test_the_places_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":  # other systems keep caches where platformdirs says
        assert cache_folder("kernels").is_dir()
        return
    at_home = tmp_path / "home" / ".cache" / "lit_byz" / "kernels"
    assert cache_folder("kernels") == at_home
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_folder("kernels") == at_home
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert cache_folder("kernels") == tmp_path / "other" / "lit_byz" / "kernels"


def test_a_private_folder_is_closed_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache_folder("kernels")
    folder.chmod(0o777)
    assert private_folder("kernels") == folder.resolve()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_of_somebody_else_is_not_private(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache_folder("kernels")
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(PermissionError, match=r"kernels belongs to another user$"):
        private_folder("kernels")


@pytest.mark.parametrize(("mode", "fits"), [(0o755, True), (0o777, False), (0o1777, True)])
def test_a_folder_that_others_can_replace_is_not_private(mode: int, fits: bool) -> None:
    above = cache_folder()
    above.chmod(mode)
    expected = contextlib.nullcontext() if fits else pytest.raises(PermissionError, match="open to")
    with expected:
        private_folder("kernels")


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", os.devnull)
    with pytest.raises(OSError):
        cache_folder("kernels")


@pytest.mark.parametrize(("home", "fits"), [("home", True), (os.devnull, False)])
def test_matplotlib_gets_a_folder_where_it_has_none(
    home: str, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("MPLCONFIGDIR", "chosen")
    place_matplotlib()
    assert os.environ["MPLCONFIGDIR"] == "chosen"
    monkeypatch.delenv("MPLCONFIGDIR")
    place_matplotlib()
    found = os.environ.get("MPLCONFIGDIR")
    assert (found is None) == fits
    assert fits or found == str(tmp_path / f"lit_byz-{os.geteuid()}" / "matplotlib")
    assert not (tmp_path / "home" / ".config").exists()
