"""Tests of data never touch the user's own data, but for those marked ``data``."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_data_folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if request.node.get_closest_marker("data") is None:
        monkeypatch.setenv("LIT_BYZ_DATA", str(tmp_path / "data"))
