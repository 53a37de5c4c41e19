"""Studies run by their commands: in this process, or in one of their own that is killed."""

import contextlib
import importlib
import io
import json
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cli import _kills
from tests.tracking._stores import DATABASE, new_store

ROOT = Path(__file__).parents[2]
# A command that begins nothing more once one run more than so many is complete: it is not over
# before it is killed, however late that is.
HELD = """
import runpy, sys, time
from lit_byz.execution import task_run

count, sys.argv = int(sys.argv[1]), sys.argv[2:]
compute, done = task_run.compute, []

def held(*args):
    if sum(outcome.complete for outcome in done) > count:
        time.sleep(600)
    done.append(compute(*args))
    return done[-1]

task_run.compute = held
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    stdout: str
    stderr: str


def arguments(folder: Path, grid: dict[str, Any], *more: str) -> list[str]:
    path = folder / "grid.yaml"
    path.write_text(yaml.safe_dump(grid))
    # By its full address: MLflow keeps one engine for each address of a process.
    places = [f"tracking.uri={new_store(folder / 'mlruns')}", "--out", str(folder / "outputs")]
    return [f"config={path}", *places, "--executor", "inline", "--progress", "plain", *more]


def run(folder: Path, pipeline: str, grid: dict[str, Any], *more: str) -> Answer:
    main = importlib.import_module(f"pipelines.{pipeline}").main
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments(folder, grid, *more))
    return Answer(code, out.getvalue(), err.getvalue())


def answer(folder: Path, pipeline: str, grid: dict[str, Any], *more: str) -> dict[str, Any]:
    """The JSON that a command prints."""
    done = run(folder, pipeline, grid, *more, "--json")
    assert done.code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def kill_after(count: int, folder: Path, pipeline: str, grid: dict[str, Any], *more: str) -> None:
    """Start a command, and kill -9 it once so many runs have ended."""
    script = str(ROOT / "pipelines" / f"{pipeline}.py")
    command = [sys.executable, "-c", HELD, str(count), script, *arguments(folder, grid, *more)]
    nowhere: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with _kills.started(command, cwd=folder, **nowhere) as process:

        def so_many_have_ended() -> bool:
            assert process.poll() is None
            return len(finished(folder)) >= count

        _kills.wait_until(f"{count} runs have ended", so_many_have_ended, 150)


def query(folder: Path, text: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(folder / "mlruns" / DATABASE, timeout=30) as database:
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
