"""Both implementations of every pass, compiled and plain torch."""

from collections.abc import Callable

import pytest

from lit_byz import _native
from lit_byz.robust import _kernels

# Kept, with what it has loaded: to load anew is to ask the compiler for its version each time.
kernels = _native.library


@pytest.fixture
def use_kernels(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """A switch between compiled kernels and plain torch (the only path without a compiler)."""

    def switch(compiled: bool) -> None:
        found = kernels() if compiled else None
        for module in (_native, _kernels):
            monkeypatch.setattr(module, "library", lambda: found)

    return switch


@pytest.fixture(params=["compiled", "plain"])
def either_path(request: pytest.FixtureRequest, use_kernels: Callable[[bool], None]) -> str:
    """Runs a test once on each path."""
    use_kernels(request.param == "compiled")
    return str(request.param)
