"""Whoever wants to see every documented command typed gets a table of what came of each."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli._documented import ROOT

SCRIPT = ROOT / ".ci" / "transcript.py"
TINY = [
    "sweep",
    "attack=sf",
    "clip=none",
    "model=logreg",
    "train.steps=2",
    "tracking.figures=false",
]


def call(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    variables = {k: v for k, v in os.environ.items() if k != "MLFLOW_TRACKING_URI"}
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"
    return subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


def transcript(folder: Path, only: str) -> "subprocess.CompletedProcess[str]":
    return call(folder, sys.executable, str(SCRIPT), "out", "--wheel", "--only", only)


def rows(folder: Path) -> list[list[str]]:
    text = (folder / "out" / "transcript.tsv").read_text()
    return [line.split("\t") for line in text.splitlines()]


def test_each_is_typed_once_with_its_code_and_times(tmp_path: Path) -> None:
    done = transcript(tmp_path, r"--version$|completion bash$")
    assert done.returncode == 0, done.stderr
    assert {row[0]: row[1] for row in rows(tmp_path)} == {
        "lit-byz completion bash": "0",
        "lit-byz --version": "0",
    }
    assert all(0 < float(row[2]) <= float(row[3]) < 60 for row in rows(tmp_path))
    assert transcript(tmp_path, r"--version$").stdout == ""  # it stands there already
    assert "lit-byz 0" in "".join(path.read_text() for path in tmp_path.glob("out/*.txt"))


@pytest.mark.slow
def test_what_fails_is_told(tmp_path: Path) -> None:
    """There is no store: its page cannot be opened."""
    done = transcript(tmp_path, r"^lit-byz ui$")
    assert done.returncode == 1
    assert [row[:2] for row in rows(tmp_path)] == [["lit-byz ui", "2"]]


@pytest.mark.slow
def test_pages_are_asked_for_and_ids_filled_in(tmp_path: Path) -> None:
    assert call(tmp_path, "lit-byz", *TINY).returncode == 0
    done = transcript(tmp_path, r"^lit-byz ui RUN_ID$|^lit-byz report RUN_ID$")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [row[0] for row in rows(tmp_path)] == ["lit-byz ui RUN_ID", "lit-byz report RUN_ID"]
    told = "".join(path.read_text() for path in sorted(tmp_path.glob("out/*.txt")))
    assert "its page answers 200" in told
    assert "worst_case.png" in told
