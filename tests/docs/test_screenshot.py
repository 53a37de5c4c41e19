"""The picture of MLflow's compare page: by a real server, in a real browser."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lit_byz.cli.command import guarded
from tests.cli._sweeps import GRID, ROOT, results, sweep
from tests.tracking._stores import new_store


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
