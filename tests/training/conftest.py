"""What all tests of training share."""

import logging
from collections.abc import Iterator

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
