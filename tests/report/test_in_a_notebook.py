"""A report's text goes to its file in a notebook too, where rich would show it instead."""

from pathlib import Path
from typing import Any

import pytest
import rich.console

from lit_byz import sweep
from tests.tracking._stores import new_store


def test_nothing_is_shown_and_the_file_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *args: shown.append(args))
    store = new_store(tmp_path / "mlruns")
    settings = ["dataset=digits", "model=logreg", "train.steps=2", "attack=[sf]"]
    found = sweep([*settings, f"tracking.uri={store}"], executor="inline")
    (text,) = (tmp_path / "mlruns").rglob("worst_case.txt")
    assert "worst case" in text.read_text()
    assert (shown, capfd.readouterr()) == ([], ("", ""))
    assert found.status.tolist() == ["exact"]
