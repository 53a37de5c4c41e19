"""Tuning as a command: every trial once, whatever happens to the processes at work."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from lit_byz.report.drawing import FORMATS
from pipelines import tune
from tests.cli import _kills
from tests.cli._sweeps import RUNS
from tests.execution._runs import MODULE, duplicates, rows, tags_of, write_users_parts
from tests.tracking._stores import new_store

ROOT = Path(__file__).parents[2]
CELL: dict[str, Any] = {
    "dataset": "digits",
    "partition": "extreme",
    "model": "logreg",
    "tracking": {"figures": False},
    "rule": "cwtm",
    "mix": "nnm",
    "workers": {"honest": 5, "f": 1, "batch_size": 8},
    "train": {"steps": 16, "eval_every": 4, "checkpoint_every": 4},
    "grid": {"axes": {"attack": ["sf", "lf", "foe"], "seed": [1, 2]}},
    "tune": {
        "space": {"clip.C": {"low": 0.01, "high": 100.0, "log": True}},
        "trials": 4,
        "compare": ["arc"],
    },
}
ONE_RUN = {**CELL, "grid": {"axes": {"attack": ["sf"]}}}
TWO_RUNS = {**CELL, "grid": {"axes": {"attack": ["sf", "lf"]}}}
KINDS = "select value, count(*) from tags where key='lit_byz.kind' group by 1"


def arguments(folder: Path, *more: str, cell: Any = None) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "cell.yaml"
    path.write_text(yaml.safe_dump(CELL if cell is None else cell))
    places = [f"tracking.uri={new_store(folder)}", "--out", str(folder / "out")]
    return [f"config={path}", *places, "--progress", "none", *more]


def command(folder: Path, *more: str, cell: Any = None) -> int:
    """The exit code of ``pipelines/tune.py``, called in this process."""
    return tune.main(arguments(folder, "--executor", "inline", *more, cell=cell))


def started(
    folder: Path, *more: str, cell: Any = None
) -> "contextlib.AbstractContextManager[subprocess.Popen[str]]":
    words = [sys.executable, str(ROOT / "pipelines" / "tune.py")]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return _kills.started([*words, *arguments(folder, *more, cell=cell)], cwd=folder, **pipes)


def study_of(
    folder: Path, capsys: pytest.CaptureFixture[str], *more: str, cell: Any = None
) -> dict[str, Any]:
    capsys.readouterr()
    assert command(folder, "--json", *more, cell=cell) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def settled(study: dict[str, Any]) -> list[Any]:
    """The parameters of trials that are numbered from 0 on and have all come to their end."""
    trials = study["trials"]
    assert [trial["trial"] for trial in trials] == list(range(len(trials)))
    assert {trial["state"] for trial in trials} <= {"complete", "pruned"}
    return [json.dumps(trial["params"], sort_keys=True) for trial in trials]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("study")
    with (made / "study.json").open("w") as file, contextlib.redirect_stdout(file):
        assert command(made, "--json") == 0
    # As it is now: a test adds trials to the study.
    (made / "kinds.json").write_text(json.dumps(dict(rows(made, KINDS))))  # type: ignore[arg-type]
    return made


@pytest.fixture
def study(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "study.json").read_text())
    return found


def test_hierarchy_ids_and_files(folder: Path, study: dict[str, Any]) -> None:
    for trial in study["trials"]:
        tags = tags_of(folder, trial["mlflow_run_id"])
        assert tags["mlflow.parentRunId"] == study["mlflow_run_id"]
        assert tags["lit_byz.kind"] == "trial"
        assert tags["lit_byz.trial_state"] == trial["state"]
        assert trial["runs_pruned"] == 6 - len(trial["runs"])
        for run in trial["runs"].values():
            assert tags_of(folder, run["run_id"])["mlflow.parentRunId"] == trial["mlflow_run_id"]
    kinds = json.loads((folder / "kinds.json").read_text())
    assert {kind: kinds[kind] for kind in ("tuning", "trial")} == {"tuning": 1, "trial": 4}
    assert study["cost"]["computed"] == study["cost"]["runs"] - study["cost"]["pruned"]
    assert set(study["comparisons"]) == {"clip=arc"}
    assert all(0 < value <= 1 for value in study["comparisons"].values())
    kept = {path.name for path in folder.glob("artifacts/**/tuning*")}
    pictures = {f"tuning_{what}.{form}" for what in ("curve", "history") for form in FORMATS}
    assert kept == {"tuning.csv", "tuning.txt", *pictures}
    assert {path.name for path in (folder / "out").iterdir()} == kept
    assert list(folder.glob("optuna/tune-digits-*.log"))


@pytest.mark.slow
def test_again_computes_nothing_and_more_trials_are_added(
    folder: Path, study: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    before = rows(folder, RUNS)
    assert command(folder) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert rows(folder, RUNS) == before
    best = study["best"]
    shown = f"best: clip.C = {best['params']['clip.C']:g} (trial {best['trial']})"
    assert shown in text
    assert "clip=arc, not tuned: worst case" in text
    assert "see the cells: lit-byz ui " in text
    assert command(folder, "--dry-run", "--trials", "5") == 0
    assert "5 trials, 1 to do" in capsys.readouterr().out
    longer = study_of(folder, capsys, "--trials", "5")
    assert longer["trials"][:4] == study["trials"]
    assert len(set(settled(longer))) == 5


# Notes in a file which run has begun; the third of a process, and those after it, take their time.
HELD = """
import os
import time
from lightning.pytorch.callbacks import Callback

class Held(Callback):
    def on_train_start(self, *_):
        if "BEGUN" in os.environ:
            with open(os.environ["BEGUN"], "ab") as file:
                file.write(b".")

    def on_train_batch_end(self, *_):
        if "BEGUN" in os.environ and os.path.getsize(os.environ["BEGUN"]) >= 3:
            time.sleep(2)
"""


@pytest.mark.slow
def test_killed_and_interrupted_studies_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "held_runs.py").write_text(HELD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LIT_BYZ_IMPORT", "held_runs")
    cell = {**TWO_RUNS, "trainer": {"callbacks": ["held_runs.Held"]}}
    for sent, executor in ((signal.SIGKILL, "inline"), (signal.SIGINT, "processes")):
        begun = tmp_path / executor
        monkeypatch.setenv("BEGUN", str(begun))
        with started(tmp_path, "--executor", executor, "--workers", "1", cell=cell) as process:

            def in_the_third(process: Any = process, begun: Path = begun) -> bool:
                assert process.poll() is None
                return begun.exists() and begun.stat().st_size == 3

            _kills.wait_until("the third run has begun", in_the_third, 150)
            os.killpg(process.pid, sent)
            text, _ = process.communicate(timeout=100)
    monkeypatch.delenv("BEGUN")
    assert process.returncode == 130
    assert "the same command goes on from here" in text
    study = study_of(tmp_path, capsys, cell=cell)
    assert len(set(settled(study))) == 4
    runs = rows(tmp_path, RUNS)
    finished = [identity for identity, status in runs if status == "FINISHED"]
    assert len(finished) == len(set(finished))
    assert not [status for _, status in runs if status == "RUNNING"]
    assert not [row for row in duplicates(tmp_path) if row[1].startswith("train/")]
    complete = [trial for trial in study["trials"] if trial["state"] == "complete"]
    used = [run["status"] for trial in complete for run in trial["runs"].values()]
    assert len(used) == 2 * len(complete)
    assert set(used) <= {"finished", "bounded"}


@pytest.mark.slow
def test_two_processes_share_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        started(tmp_path, "--executor", "inline", cell=ONE_RUN) as one,
        started(tmp_path, "--executor", "inline", cell=ONE_RUN) as other,
    ):
        both = (one, other)
        texts = [process.communicate(timeout=250)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], texts
    study = study_of(tmp_path, capsys, cell=ONE_RUN)
    assert len(set(settled(study))) == len(study["trials"]) == 4
    identities = Counter(identity for identity, _ in rows(tmp_path, RUNS))
    assert set(identities.values()) == {1}
    kinds = dict(rows(tmp_path, KINDS))  # type: ignore[arg-type]
    assert kinds == {"tuning": 1, "trial": 4, "cell": 1, "run": 5}


@pytest.mark.slow
def test_any_keys_in_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Integers and choices; a space with fewer combinations than trials is gone through once."""
    space = {"workers.batch_size": {"low": 4, "high": 5}, "rule": {"choices": ["cwtm", "gm"]}}
    tuned = {"space": space, "trials": 9, "compare": [{"mix": "none", "rule": "average"}]}
    cell = {**ONE_RUN, "tune": tuned}
    database = tmp_path / "study.db"
    more = ["--storage", f"sqlite:///{database}", "--study", "mine", "--json"]
    assert command(tmp_path, *more, cell=cell) == 0
    study = json.loads(capsys.readouterr().out)
    assert study["study"] == "mine"
    assert len(set(settled(study))) == len(study["trials"]) == 4
    sizes = [trial["params"]["workers.batch_size"] for trial in study["trials"]]
    assert all(type(size) is int for size in sizes)
    assert set(study["comparisons"]) == {"mix=none, rule=average"}
    assert database.exists()
    assert not (tmp_path / "optuna").exists()
    assert command(tmp_path, *more, "train.lr=0.2", cell=cell) == 2
    assert "is a study of other settings" in capsys.readouterr().err


@pytest.mark.slow
def test_failed_trials_are_tried_again_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_users_parts(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LIT_BYZ_IMPORT", MODULE)
    cell = {**CELL, "grid": {"axes": {"attack": ["sf", f"{MODULE}.Breaks"]}}}
    few = ["--trials", "2", "--json", "tune.compare=[arc]"]
    assert command(tmp_path, *few, cell=cell) == 1
    study = json.loads(capsys.readouterr().out)
    assert [trial["state"] for trial in study["trials"]] == ["failed", "failed"]
    assert "the attackers lost their nerve" in "".join(study["failed"].values())
    with (tmp_path / "out" / "tuning.csv").open() as file:
        written = list(csv.DictReader(file))
    failed = [row for row in written if row["status"] == "failed"]
    assert {row["trial"] for row in failed} == {"0", "1", "clip=arc"}
    (worst,) = [r for r in written if r["trial"] == "clip=arc" and r["attack"] == "worst case"]
    assert worst["bound"] == "at most"
    text = (tmp_path / "out" / "tuning.txt").read_text()
    assert "≤: at most (runs pruned, failed or missing)" in text
    assert "clip=arc, not tuned: worst case ≤ " in text
    known = len(rows(tmp_path, RUNS))
    assert command(tmp_path, *few, cell=cell) == 1
    assert len(rows(tmp_path, RUNS)) == known
    capsys.readouterr()
    assert command(tmp_path, *few, "--retry-failed", cell=cell) == 1
    again = json.loads(capsys.readouterr().out)["trials"]
    assert [t["params"] for t in again[2:]] == [t["params"] for t in study["trials"]]
