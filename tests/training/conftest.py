"""What all tests of training share."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.robust.conftest import use_kernels

__all__ = ["use_kernels"]


@pytest.fixture(autouse=True)
def _no_banners() -> Iterator[None]:
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of this test alone for choices that are measured."""
    monkeypatch.setenv("LIT_BYZ_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gradients"
