"""Compiled code is there where it can be, and its absence is no error."""

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lit_byz import _native


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    ask_anew()
    yield
    monkeypatch.undo()
    ask_anew()


def ask_anew() -> None:
    for known in (_native.library, _native._loaded):
        known.cache_clear()


@pytest.mark.compiler
def test_is_there() -> None:
    assert isinstance(_native.library(), ctypes.CDLL), "the tests need a C++ compiler"


def test_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIT_BYZ_COMPILE", "0")
    assert _native.library() is None


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_where_there_is_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert _native.library() is None


def test_a_compiler_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIT_BYZ_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", "false")
    with pytest.warns(UserWarning, match="no compiled kernels, using plain torch"):
        assert _native.library() is None


@pytest.fixture
def quick_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that has compiled it before."""
    library = _native.library()
    assert library is not None, "the tests need a C++ compiler"
    script = tmp_path / "compile"
    script.write_text(
        f"""#!/bin/sh
        for last; do :; done
        case "$*" in
        --version) ;;
        *-shared*) cp '{library._name}' "$last" ;;
        *) : > "$last" ;;
        esac
        """
    )
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    ask_anew()
    return script


def plant(path: Path, mode: int) -> None:
    """Put something there that is no library."""
    path.unlink()
    path.write_bytes(b"planted")
    path.chmod(mode)
    ask_anew()


@pytest.mark.compiler
def test_what_another_user_has_put_into_the_cache_is_not_loaded(
    quick_compiler: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIT_BYZ_CACHE", str(tmp_path))
    assert _native.library() is not None
    (made,) = (tmp_path / "kernels").glob("*.so")
    assert made.stat().st_mode & 0o777 == made.parent.stat().st_mode & 0o777 == 0o700
    plant(made, 0o722)
    assert _native.library() is not None
    assert made.read_bytes() != b"planted"  # it was made anew
    plant(made, 0o700)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.warns(UserWarning, match=r"compiled kernels are not kept: .*another user$"):
        library = _native.library()
    assert library is not None
    assert not Path(library._name).is_relative_to(tmp_path)
    assert made.read_bytes() == b"planted"


@pytest.mark.compiler
def test_a_home_that_cannot_be_written_to_stops_nothing(
    quick_compiler: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIT_BYZ_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", os.devnull)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.warns(UserWarning, match="compiled kernels are not kept: ") as told:
        assert _native.library() is not None
    assert len(told) == 1
    assert list(tmp_path.iterdir()) == [quick_compiler]
    ask_anew()
    monkeypatch.setattr(tempfile, "tempdir", os.devnull)
    with pytest.warns(UserWarning, match="no compiled kernels, using plain torch: "):
        assert _native.library() is None


def test_a_warning_is_one_line(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": os.devnull, "CXX": "false", "LIT_BYZ_CACHE": ""}
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])
    program = "from lit_byz import _native; _native.library()"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    lines = done.stderr.splitlines()
    assert [line.partition(": UserWarning: ")[2].partition(":")[0] for line in lines] == [
        "compiled kernels are not kept",
        "no compiled kernels, using plain torch",
    ]
