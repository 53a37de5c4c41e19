"""Where the cache is: where the user says, else where the system keeps caches."""

import sys
from pathlib import Path

import pytest

from lit_byz._cache import cache_folder


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
