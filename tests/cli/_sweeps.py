"""Small sweeps as a user starts them, and what they leave in an SQLite store."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.tracking._stores import new_store

ROOT = Path(__file__).parents[2]
GRID = {
    "dataset": "digits",
    "model": "logreg",
    "tracking": {"figures": False},
    "train": {"steps": 40, "eval_every": 10, "checkpoint_every": 5},
    "grid": {"axes": {"clip": ["none", "arc"], "attack": ["sf", "lf"], "seed": [1, 2]}},
}
# The identity and the status of every run, cells and sweeps left out.
RUNS = """
    select t.value, r.status from runs r
    join tags t on t.run_uuid = r.run_uuid and t.key = 'lit_byz.identity'
    join tags k on k.run_uuid = r.run_uuid and k.key = 'lit_byz.kind' and k.value = 'run'
"""


def furnish(folder: Path) -> None:
    """Spare a folder's first sweep the seconds that MLflow takes to make its tables."""
    new_store(folder / "mlruns")


def arguments(folder: Path, *more: str, grid: Any = None) -> list[str]:
    path = folder / "grid.yaml"
    path.write_text(yaml.safe_dump(GRID if grid is None else grid))
    script = str(ROOT / "pipelines" / "sweep.py")
    options = ["--progress", "plain", "--out", "outputs"]
    return [sys.executable, script, f"config={path}", *options, *more]


def sweep(folder: Path, *more: str, grid: Any = None) -> "subprocess.CompletedProcess[str]":
    command = arguments(folder, *more, grid=grid)
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=200, check=False
    )


def results(answer: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(folder / "mlruns" / "mlflow.db") as database:
        return database.execute(query).fetchall()
