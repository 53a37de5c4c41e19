"""What a command prints where, and how it ends when something is in its way."""

import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from docs.browser import mlflow_ui
from lit_byz.cli import answer as answers
from lit_byz.tracking import open_store
from tests.cli._studies import query, run
from tests.cli._sweeps import GRID, ROOT, RUNS, furnish, results, rows, sweep
from tests.cli.test_cli import complaints
from tests.tracking._stores import new_store

ATTACKS = """
import os
from pathlib import Path
from lit_byz.attacks import SignFlip

class Loud(SignFlip):
    def plan(self, scene, state):
        print("a user's class prints")
        return super().plan(scene, state)

class Broken(SignFlip):
    def plan(self, scene, state):
        print("a user's class prints")
        raise RuntimeError(f"no way to {os.environ['PLACE']}")

class Full(SignFlip):
    def plan(self, scene, state):
        if scene.step == 3 and not Path("space").exists():
            with open("/dev/full", "w") as file:
                file.write("x")
        return super().plan(scene, state)
"""
SECRET = "not-to-be-seen"


def grid(attack: str, seeds: int = 1) -> dict[str, Any]:
    axes = {"attack": [f"loud_attacks.{attack}"], "seed": list(range(1, seeds + 1))}
    short = {"steps": 6, "eval_every": 3, "checkpoint_every": 2}
    return {**GRID, "train": short, "grid": {"axes": axes}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loud_attacks.py").write_text(ATTACKS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LIT_BYZ_IMPORT", "loud_attacks")
    monkeypatch.setenv("PLACE", f"http://me:{SECRET}@nowhere")
    monkeypatch.delitem(sys.modules, "loud_attacks", raising=False)
    return tmp_path


def test_the_answer_has_standard_output_for_itself() -> None:
    """Whoever prints: Python, a library that knows the number only, another process."""
    program = (
        "import os, subprocess, sys\n"
        "from lit_byz.cli import answer\n"
        "with answer.alone():\n"
        "    print('python')\n"
        "    os.write(1, b'number\\n')\n"
        "    subprocess.run(['echo', 'process'])\n"
        "    answer.stream().write('{}\\n')\n"
        "print('afterwards')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "{}\nafterwards\n"
    assert sorted(done.stderr.split()) == ["number", "process", "python"]


def test_a_failure_gives_standard_output_back(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        print("inside")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), answers.alone():
        fail()
    print("afterwards")
    assert capsys.readouterr() == ("afterwards\n", "inside\n")
    assert answers.stream() is sys.stdout


def test_json_alone_and_tracebacks_on_request(folder: Path) -> None:
    shown = run(folder, "sweep", grid("Broken"), "--json", "--debug")
    assert shown.code == 1
    assert list(json.loads(shown.stdout)["failed"].values()) == [
        "RuntimeError: no way to http://me:***@nowhere"
    ]
    assert "a user's class prints\n" in shown.stderr
    assert shown.stderr.count("Traceback (most recent call last):") == 1
    assert 'loud_attacks.py", line ' in shown.stderr
    assert SECRET not in shown.stderr
    quiet = run(folder, "sweep", grid("Broken"), "--retry-failed", "--progress", "none")
    assert "no way to" in quiet.stdout
    assert "Traceback" not in quiet.stdout
    assert quiet.stderr == ""
    plan = run(folder, "sweep", grid("Loud"), "--json", "--dry-run")
    assert "1 run: 1 cell, 1 attack, 1 seed" in json.loads(plan.stdout)["plan"]
    config = run(folder, "sweep", grid("Loud"), "--json", "--print-config").stdout
    assert "loud_attacks.Loud" in config


@pytest.mark.parametrize(
    "name", ["mlflow.store.db.utils", "alembic.runtime", "sqlalchemy.engine", "urllib3.connection"]
)
def test_what_libraries_log_stays_off_the_console(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    open_store(new_store(tmp_path))
    logging.getLogger(name).error("SQLAlchemy database error")
    assert capsys.readouterr() == ("", "")


def test_a_full_disk_ends_a_sweep_and_fails_no_run(folder: Path) -> None:
    shown = run(folder, "sweep", grid("Full", seeds=2))
    assert shown.code == 1
    told, last = shown.stderr.splitlines()[-2:]
    assert "seed 1: interrupted (no space left on the disk)" in told
    assert last.startswith(
        "error: no space left on the disk: make some, then the same command goes on: python "
    )
    assert "config=" in last
    assert [status for _, status in query(folder, RUNS)] == ["KILLED"]
    (folder / "space").touch()
    again = run(folder, "sweep", grid("Full", seeds=2))
    assert again.code == 0, again.stderr
    # The first one went on from its checkpoint.
    assert [status for _, status in query(folder, RUNS)] == ["FINISHED"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "ray"])
def test_other_processes_tell_the_same(folder: Path, executor: str) -> None:
    furnish(folder)
    both = {**grid("Broken"), "grid": {"axes": {"attack": ["loud_attacks.Broken", "sf"]}}}
    where = ["--executor", executor, "--workers", "1"]
    shown = sweep(folder, *where, "--json", "--debug", grid=both)
    assert shown.returncode == 1, shown.stderr
    assert list(results(shown)["failed"]) == ["loud_attacks.Broken | seed 1"]
    assert shown.stderr.count("Traceback (most recent call last):") == 1
    assert 'loud_attacks.py", line ' in shown.stderr
    assert SECRET not in shown.stderr
    (folder / "other").mkdir()
    shutil.copy("loud_attacks.py", "other")
    furnish(folder / "other")
    full = sweep(folder / "other", *where, grid=grid("Full", seeds=4))
    assert full.returncode == 1
    assert full.stderr.count("interrupted (no space left on the disk)") == 1
    assert full.stderr.splitlines()[-1].startswith("error: no space left on the disk: make some")
    assert "FAILED" not in {status for _, status in rows(folder / "other", RUNS)}


@pytest.mark.slow
def test_a_store_behind_a_server(folder: Path) -> None:
    with mlflow_ui(new_store(folder)) as address:
        settings = [f"tracking.uri={address}", "--json", "--workers", "1"]
        done = sweep(folder, *settings, grid=grid("Loud"))
        assert done.returncode == 0, done.stderr
        assert results(done)["computed"] == 1
        assert "View run" not in done.stderr
        run_id = open_store(address).search("1", "tags.`lit_byz.kind` = 'sweep'")[0].info.run_id
        report = [sys.executable, str(ROOT / "pipelines" / "report.py"), settings[0], run_id]
        drawn = subprocess.run(
            [*report, "--json"], cwd=folder, capture_output=True, text=True, check=False
        )
        assert drawn.returncode == 0, drawn.stderr
        assert json.loads(drawn.stdout)["cells"] == results(done)["cells"]
        assert complaints(drawn) == ""
