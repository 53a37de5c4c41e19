"""Studies run as a person would: a command in a folder of its own, killed if need be."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from tests.tracking._stores import new_store

ROOT = Path(__file__).parents[2]


def arguments(folder: Path, pipeline: str, grid: dict[str, Any], *more: str) -> list[str]:
    path = folder / "grid.yaml"
    path.write_text(yaml.safe_dump(grid))
    new_store(folder / "mlruns")
    script = str(ROOT / "pipelines" / pipeline)
    options = ["--executor", "inline", "--progress", "plain"]
    return [sys.executable, script, f"config={path}", *options, *more]


def run(
    folder: Path, pipeline: str, grid: dict[str, Any], *more: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        arguments(folder, pipeline, grid, *more),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def answer(
    folder: Path, pipeline: str, grid: dict[str, Any], *more: str, code: int = 0
) -> dict[str, Any]:
    """The JSON that a command prints."""
    done = run(folder, pipeline, grid, *more, "--json")
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def kill_after(count: int, folder: Path, pipeline: str, grid: dict[str, Any], *more: str) -> None:
    """Start a command, and kill -9 it once so many runs have ended."""
    process = subprocess.Popen(
        arguments(folder, pipeline, grid, *more),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 100
    while len(finished(folder)) < count:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def query(folder: Path, text: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(folder / "mlruns" / "mlflow.db", timeout=30) as database:
        return database.execute(text).fetchall()


def finished(folder: Path) -> list[str]:
    """The identities of the finished runs, one for each time that one was computed."""
    found = query(
        folder,
        "select t.value from runs r "
        "join tags t on t.run_uuid = r.run_uuid and t.key = 'lit_byz.identity' "
        "join tags k on k.run_uuid = r.run_uuid and k.key = 'lit_byz.kind' and k.value = 'run' "
        "where r.status = 'FINISHED'",
    )
    return [identity for (identity,) in found]
