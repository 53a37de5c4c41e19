"""What tests of single runs share."""

import sys
from collections.abc import Iterator

import pytest

from tests.execution import _runs
from tests.execution._whole import RICH, Whole, uninterrupted


@pytest.fixture(scope="module")
def users_parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Parts that a user has written, in a module that can be imported."""
    folder = tmp_path_factory.mktemp("users")
    _runs.write_users_parts(folder)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    sys.modules.pop(_runs.MODULE, None)


@pytest.fixture(scope="module")
def whole(users_parts: None, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return uninterrupted(tmp_path_factory.mktemp("whole"), RICH)
