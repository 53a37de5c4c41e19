"""The picture of MLflow's compare page: by a real server, in a real browser."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lit_byz.cli.command import guarded
from tests.cli._sweeps import GRID, ROOT, results, sweep
from tests.tracking._stores import new_store


def picture(folder: Path, *words: str) -> dict[str, Any]:
    """What is read off a page of which a picture is taken, the last word being its file."""
    command = [
        sys.executable,
        str(ROOT / "docs" / "screenshot.py"),
        *words[:-1],
        "--out",
        words[-1],
    ]
    taken = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert taken.returncode == 0, taken.stderr
    pixels = np.asarray(Image.open(folder / words[-1]).convert("L"))
    # Text and lines are a few per cent of a page that is there.
    assert 0.005 < (pixels < 128).mean() < 0.5
    found: dict[str, Any] = json.loads(taken.stdout)
    return found


@pytest.mark.services
def test_the_link_opens_on_ranked_cells_and_a_sweep_describes_itself(tmp_path: Path) -> None:
    grid = {**GRID, "grid": {"axes": {"clip": ["none", "arc"], "attack": ["sf", "lf"]}}}
    made = sweep(tmp_path, "--json", grid=grid)
    assert made.returncode == 0, made.stderr
    cells = sorted(results(made)["cells"], key=lambda cell: -cell["worst_case"]["mean"])
    rows = picture(tmp_path, "cells", "cells.png")["rows"]
    assert [row["attributes.`Run Name`"] for row in rows] == [cell["cell"] for cell in cells]
    numbers = ("worst_case/max_accuracy", "worst_case/max_accuracy_std", "worst_case/mean_last_5")
    for row, cell in zip(rows, cells, strict=True):
        shown = [float(row[f"metrics.`{name}`"]) for name in numbers]
        expected = (cell["worst_case"]["mean"], 0.0, cell["ends"]["mean_last_5"]["mean"])
        assert shown == pytest.approx(expected, abs=6e-4)
        assert row["tags.`lit_byz.worst_case`"] == "exact"
    described = picture(tmp_path, "description", "description.png")
    heading, *below = described["rows"]
    assert heading == ["cell", "worst case", "last", "mean of the last five"]
    assert [(row[0], row[1]) for row in below] == [
        (cell["cell"], f"{100 * cell['worst_case']['mean']:.1f}") for cell in cells
    ]
    assert described["pictures"][0] > 500


@pytest.mark.services
def test_compare_page_shows_the_cells_and_their_worst_cases(tmp_path: Path) -> None:
    grid = {**GRID, "grid": {"axes": {"clip": ["none", "arc"], "attack": ["sf", "lf"]}}}
    made = sweep(tmp_path, "--json", grid=grid)
    assert made.returncode == 0, made.stderr
    picture = tmp_path / "compare.png"
    command = [sys.executable, str(ROOT / "docs" / "screenshot.py"), "--out", str(picture)]
    taken = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert taken.returncode == 0, taken.stderr
    shown = json.loads(taken.stdout)
    cells = results(made)["cells"]
    assert shown["metric"] == "worst_case/max_accuracy"
    assert shown["names"] == [cell["cell"] for cell in cells] == ["clip=none", "clip=arc"]
    expected = [cell["worst_case"]["mean"] for cell in cells]
    assert [float(value) for value in shown["values"]] == pytest.approx(expected, abs=6e-4)
    pixels = np.asarray(Image.open(picture).convert("L"))
    assert pixels.shape[0] > 500
    assert pixels.shape[1] > 800
    # Text and lines are a few per cent of a page that is there.
    assert 0.005 < (pixels < 128).mean() < 0.5


def test_without_a_sweep_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new_store(tmp_path / "mlruns")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # the command adds the folder it is called in
    main = runpy.run_path(str(ROOT / "docs" / "screenshot.py"))["main"]
    assert guarded(main, ["--experiment", "none"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "there is no experiment none" in said
