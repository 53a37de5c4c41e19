"""Compiled code is there where it can be, and its absence is no error."""

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

from lit_byz import _native


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for known in (_native.library, _native._loaded):
        known.cache_clear()
    yield
    monkeypatch.undo()
    for known in (_native.library, _native._loaded):
        known.cache_clear()


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
