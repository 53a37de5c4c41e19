"""The picture of MLflow's compare page: by a real server, in a real browser."""

import contextlib
import json
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lit_byz.cli.command import guarded
from tests.cli._kills import started
from tests.cli._sweeps import GRID, ROOT, results, sweep
from tests.tracking._stores import new_store

Made = tuple[Path, list[dict[str, Any]]]

LONGEST = 400  # seconds: MLflow's start, Chromium's, and pages on a busy machine


def picture(folder: Path, *words: str) -> dict[str, Any]:
    """What is read off a page of which a picture is taken, the last word being its file."""
    script = str(ROOT / "docs" / "screenshot.py")
    command = [sys.executable, script, *words[:-1], "--out", words[-1]]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(command, cwd=folder, **pipes) as taking:
        try:
            out, err = taking.communicate(timeout=LONGEST)
        finally:
            # Chromium and MLflow have sessions of their own: the script itself ends them.
            taking.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                taking.wait(60)
    assert taking.returncode == 0, err
    # Text and lines are a few per cent of a page that is there.
    pixels = np.asarray(Image.open(folder / words[-1]).convert("L"))
    assert 0.005 < (pixels < 128).mean() < 0.5
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A folder with a sweep in its store, and the sweep's cells."""
    folder = tmp_path_factory.mktemp("sweep")
    grid = {**GRID, "grid": {"axes": {"clip": ["none", "arc"], "attack": ["sf", "lf"]}}}
    answer = sweep(folder, "--json", grid=grid)
    assert answer.returncode == 0, answer.stderr
    return folder, results(answer)["cells"]


@pytest.mark.services
@pytest.mark.timeout(1200)
def test_the_link_opens_on_ranked_cells_and_a_sweep_describes_itself(made: Made) -> None:
    folder, found = made
    cells = sorted(found, key=lambda cell: -cell["worst_case"]["mean"])
    rows = picture(folder, "cells", "cells.png")["rows"]
    assert [row["attributes.`Run Name`"] for row in rows] == [cell["cell"] for cell in cells]
    numbers = ("worst_case/max_accuracy", "worst_case/last_accuracy", "worst_case/mean_last_5")
    for row, cell in zip(rows, cells, strict=True):
        shown = [float(row[f"metrics.`{name}`"]) for name in numbers]
        ends = [cell["ends"][name]["mean"] for name in ("last_accuracy", "mean_last_5")]
        expected = (cell["worst_case"]["mean"], *ends)
        assert shown == pytest.approx(expected, abs=6e-4)
        assert row["tags.`lit_byz.worst_case`"] == "exact"
    described = picture(folder, "description", "description.png")
    heading, *below = described["rows"]
    assert heading == ["cell", "worst case", "last", "mean of the last five"]
    assert [(row[0], row[1]) for row in below] == [
        (cell["cell"], f"{100 * cell['worst_case']['mean']:.1f}") for cell in cells
    ]
    assert described["pictures"][0] > 500


@pytest.mark.services
@pytest.mark.timeout(1200)
def test_compare_page_shows_the_cells_and_their_worst_cases(made: Made) -> None:
    folder, cells = made
    shown = picture(folder, "compare.png")
    assert shown["metric"] == "worst_case/max_accuracy"
    assert shown["names"] == [cell["cell"] for cell in cells] == ["clip=none", "clip=arc"]
    expected = [cell["worst_case"]["mean"] for cell in cells]
    assert [float(value) for value in shown["values"]] == pytest.approx(expected, abs=6e-4)
    width, height = Image.open(folder / "compare.png").size
    assert width > 800
    assert height > 500


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
