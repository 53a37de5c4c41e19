"""Both implementations of every pass, compiled and plain torch."""

from collections.abc import Callable, Iterator

import pytest

from lit_byz import _native


@pytest.fixture
def use_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], None]]:
    """A switch between compiled kernels and plain torch (the only path without a compiler)."""

    def switch(compiled: bool) -> None:
        monkeypatch.setenv("LIT_BYZ_COMPILE", str(int(compiled)))
        _native.library.cache_clear()

    yield switch
    monkeypatch.undo()
    _native.library.cache_clear()


@pytest.fixture(params=["compiled", "plain"])
def either_path(request: pytest.FixtureRequest, use_kernels: Callable[[bool], None]) -> str:
    """Runs a test once on each path."""
    use_kernels(request.param == "compiled")
    return str(request.param)
