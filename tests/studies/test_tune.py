"""Tuning: sound pruning, every trial once, whatever happens to the processes at work."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lit_byz.errors import BadRequest
from lit_byz.cli.command import guarded
from lit_byz.config.search_space import Range, read_problem
from lit_byz.experiment.tuning import upper_bound
from pipelines import tune
from tests.execution._runs import MODULE, duplicates, rows, tags_of, write_users_parts
from tests.tracking._stores import new_store

ROOT = Path(__file__).parents[2]
CELL: dict[str, Any] = {
    "dataset": "digits",
    "partition": "extreme",
    "model": "logreg",
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
RUN_TAGS = """
    select t.value, r.status from runs r
    join tags t on t.run_uuid = r.run_uuid and t.key = 'lit_byz.identity'
    join tags k on k.run_uuid = r.run_uuid and k.key = 'lit_byz.kind' and k.value = 'run'
"""


def arguments(folder: Path, *more: str, cell: Any = None) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "cell.yaml"
    path.write_text(yaml.safe_dump(CELL if cell is None else cell))
    places = [f"tracking.uri={new_store(folder)}", "--out", str(folder / "out")]
    return [f"config={path}", *places, "--progress", "none", *more]


def command(folder: Path, *more: str, cell: Any = None) -> int:
    """The exit code of ``pipelines/tune.py``, called in this process."""
    return guarded(tune.main, arguments(folder, "--executor", "inline", *more, cell=cell))


def start(folder: Path, *more: str, cell: Any = None) -> "subprocess.Popen[str]":
    words = [sys.executable, str(ROOT / "pipelines" / "tune.py")]
    return subprocess.Popen(
        [*words, *arguments(folder, *more, cell=cell)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


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
    return made


@pytest.fixture
def study(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "study.json").read_text())
    return found


@given(
    st.dictionaries(st.integers(1, 3), st.lists(st.floats(0, 1), min_size=1), min_size=1),
    st.randoms(use_true_random=False),
)
def test_the_bound_is_never_below_the_value(table: dict[int, list[float]], random: Any) -> None:
    everything = [(seed, accuracy) for seed, values in table.items() for accuracy in values]
    some = [pair for pair in everything if random.random() < 0.5]
    value = upper_bound(list(table), everything)
    assert value == pytest.approx(sum(map(min, table.values())) / len(table))
    assert value <= upper_bound(list(table), some) <= 1.0


@pytest.mark.slow
def test_pruning_loses_nothing(folder: Path, study: dict[str, Any]) -> None:
    """Against every run of the same trials, computed to the end."""
    from lit_byz.experiment.executors import InProcess
    from lit_byz.experiment.grid import Grid, points
    from lit_byz.experiment.sweep import make_sweep
    from lit_byz.tracking.worst_case import worst_case

    trials = study["trials"]
    assert study["cost"]["runs"] == 4 * 6
    assert study["cost"]["pruned"] >= study["cost"]["runs"] / 3
    assert study["cost"]["computed"] == study["cost"]["runs"] - study["cost"]["pruned"]
    base = {k: v for k, v in CELL.items() if k not in ("tune", "grid")}
    base |= {"clip": "static", "tracking": {"uri": new_store(folder)}}
    axes = {"clip.C": [t["params"]["clip.C"] for t in trials], **CELL["grid"]["axes"]}
    whole = make_sweep(points(Grid(base, axes)))
    whole.compute(InProcess(), lambda *_: None)
    truth = []
    for by_attack in whole.results().values():
        runs = [(s, a, o.max_accuracy) for a, found in by_attack.items() for s, o in found.items()]
        truth.append(worst_case([(s, a, float(m or 0)) for s, a, m in runs]).mean)
    assert study["best"]["worst_case"] == max(truth)
    assert study["best"]["trial"] in [i for i, value in enumerate(truth) if value == max(truth)]
    for trial, value in zip(trials, truth, strict=True):
        if trial["upper_bound"]:
            assert value <= trial["worst_case"] < max(truth)
        else:
            assert trial["worst_case"] == value


def test_hierarchy_ids_and_files(folder: Path, study: dict[str, Any]) -> None:
    for trial in study["trials"]:
        tags = tags_of(folder, trial["mlflow_run_id"])
        assert tags["mlflow.parentRunId"] == study["mlflow_run_id"]
        assert tags["lit_byz.kind"] == "trial"
        assert tags["lit_byz.trial_state"] == trial["state"]
        assert trial["runs_pruned"] == 6 - len(trial["runs"])
        assert json.loads(tags["lit_byz.runs"]) == [r["run_id"] for r in trial["runs"].values()]
        for run in trial["runs"].values():
            assert tags_of(folder, run["run_id"])["mlflow.parentRunId"] == trial["mlflow_run_id"]
    kinds = dict(
        rows(folder, "select value, count(*) from tags where key='lit_byz.kind' group by 1")
    )
    assert {kind: kinds[kind] for kind in ("study", "trial")} == {"study": 1, "trial": 4}
    assert set(study["comparisons"]) == {"clip=arc"}
    assert all(0 < value <= 1 for value in study["comparisons"].values())
    kept = list(folder.glob("artifacts/**/tuning*"))
    assert {path.name for path in kept} == {
        "tuning.csv",
        "tuning.txt",
        "tuning_curve.png",
        "tuning_history.png",
    }
    assert {path.name for path in (folder / "out").iterdir()} < {path.name for path in kept}
    assert list(folder.glob("optuna/tune-digits-*.log"))


def test_again_computes_nothing_and_more_trials_are_added(
    folder: Path, study: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    before = rows(folder, RUN_TAGS)
    assert command(folder) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert rows(folder, RUN_TAGS) == before
    best = study["best"]
    shown = f"best: clip.C = {best['params']['clip.C']:g} (trial {best['trial']})"
    assert shown in text
    assert "clip=arc, not tuned: worst case" in text
    assert "mlflow ui --backend-store-uri" in text
    assert command(folder, "--dry-run", "--trials", "5") == 0
    assert "5 trials, 1 to do" in capsys.readouterr().out
    longer = study_of(folder, capsys, "--trials", "5")
    assert longer["trials"][:4] == study["trials"]
    assert len(set(settled(longer))) == 5


@pytest.mark.slow
def test_killed_and_interrupted_studies_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for sent, executor in ((signal.SIGKILL, "inline"), (signal.SIGINT, "processes")):
        process = start(tmp_path, "--executor", executor, "--workers", "1", cell=TWO_RUNS)
        known = len(rows(tmp_path, RUN_TAGS))
        deadline = time.monotonic() + 60
        while len(rows(tmp_path, RUN_TAGS)) < known + 3:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, sent)
        text, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from here" in text
    study = study_of(tmp_path, capsys, cell=TWO_RUNS)
    assert len(set(settled(study))) == 4
    runs = rows(tmp_path, RUN_TAGS)
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
    both = [start(tmp_path, "--executor", "inline", cell=ONE_RUN) for _ in range(2)]
    texts = [process.communicate(timeout=100)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], texts
    study = study_of(tmp_path, capsys, cell=ONE_RUN)
    assert len(set(settled(study))) == len(study["trials"]) == 4
    identities = Counter(identity for identity, _ in rows(tmp_path, RUN_TAGS))
    assert set(identities.values()) == {1}
    kinds = dict(
        rows(tmp_path, "select value, count(*) from tags where key='lit_byz.kind' group by 1")
    )
    assert kinds == {"study": 1, "trial": 4, "cell": 1, "run": 5}


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


def test_failed_trials_are_tried_again_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_users_parts(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    cell = {**CELL, "grid": {"axes": {"attack": ["sf", f"{MODULE}.Breaks"]}}}
    few = ["--trials", "2", "--json", "tune.compare=[arc]"]
    assert command(tmp_path, *few, cell=cell) == 1
    study = json.loads(capsys.readouterr().out)
    assert [trial["state"] for trial in study["trials"]] == ["failed", "failed"]
    assert "the attackers lost their nerve" in "".join(study["failed"].values())
    known = len(rows(tmp_path, RUN_TAGS))
    assert command(tmp_path, *few, cell=cell) == 1
    assert len(rows(tmp_path, RUN_TAGS)) == known
    capsys.readouterr()
    assert command(tmp_path, *few, "--retry-failed", cell=cell) == 1
    again = json.loads(capsys.readouterr().out)["trials"]
    assert [t["params"] for t in again[2:]] == [t["params"] for t in study["trials"]]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--trials", "0"], "--trials = 0"),
        (["--trials", "many"], "--trials"),
        (["--workers", "0"], "--workers 0"),
        (["--storage", "nonsense"], "--storage nonsense"),
        (["--storage", "nosuch://host/db"], "--storage nosuch://host/db"),
        (["tune.trials=1.5"], "tune.trials = 1.5"),
        (["tune.trails=5"], "did you mean 'trials'?"),
        (["tune.space.clip.C.low=100"], "must be less than high"),
        (["tune.space.clip.C.low=-1"], "must be greater than 0 on a log scale"),
        (["tune.space.clip.C.low=much"], "low = 'much': must be a number"),
        (["tune.space.clip.C.lo=1"], "did you mean 'low'?"),
        (["tune.space.clip.C.log=2"], "log = 2"),
        (["tune.space.clip.C=1"], "unknown key 'C'"),
        (["tune.space.seed=1"], "must be a range"),
        (["tune.space.rule.choices=[]"], "choices has no values"),
        (["tune.space.rule.choices=[cwtm,cwtn]"], "cwtn"),
        (["tune.space.train.lr.low=0.1"], "high is missing"),
        (["tune.space.train.stepz.choices=[1]"], "did you mean 'steps'?"),
        (["tune.space.workers.batch_size.low=1.5", "tune.space.workers.batch_size.high=3"], "1.5"),
        (["tune.space.seed.choices=[1,2]"], "cannot be tuned"),
        (["tune.space.rule.f.low=0", "tune.space.rule.f.high=3"], "2 f < n"),
        (["tune.compare=[ark]"], "did you mean 'arc'?"),
        (["tune.compare=arc"], "tune.compare = 'arc'"),
        (["attack=[sf,fou]"], "fou"),
        (["rule=[cwtm,gm]"], "a study tunes one cell"),
        (["clip=arc"], "'C'"),
        (["tracking.enabled=false"], "tracking.enabled"),
        (["experiment=nothing"], "nothing"),
    ],
)
def test_bad_requests_start_nothing(
    more: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "cell.yaml"
    path.write_text(yaml.safe_dump(CELL))
    monkeypatch.chdir(tmp_path)
    source = [] if any(word.startswith("experiment=") for word in more) else [f"config={path}"]
    assert guarded(tune.main, [*source, *more]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert words in said.err
    assert said.out == ""
    assert [entry.name for entry in tmp_path.iterdir()] == ["cell.yaml"]


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"space": {"rule": {"choices": []}}}, "choices = []"),
        ({"space": {"rule": {"choices": ["gm", "gm"]}}}, "'gm' is there twice"),
        ({"space": {"clip.C": {"choices": [[1, 2]]}}}, "cannot be a choice"),
        ({"space": [1, 2]}, "tune.space = [1, 2]"),
        ({"compare": [{}]}, "an entry is empty"),
        ([1], "tune = [1]"),
    ],
)
def test_bad_sections(section: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "cell.yaml"
    path.write_text(yaml.safe_dump({**CELL, "tune": section}))
    with pytest.raises(BadRequest) as raised:
        read_problem([f"config={path}"], "tune_digits")
    assert words in str(raised.value)


def test_what_is_tuned_replaces_its_axis() -> None:
    """The quickstart is a grid over clips; tuned, it is one cell of static clipping."""
    problem = read_problem(["experiment=quickstart", "tune.space.clip.C.low=1"], "tune_digits", 3)
    assert problem.space == {"clip.C": Range(1.0, 100.0, log=True)}
    assert [point.attack for point in problem.reference()] == ["sf", "lf", "mimic", "foe", "alie"]
    assert {point.config.clip.name for point in problem.reference()} == {"static"}
    assert {point.config.clip.name for point in problem.comparisons()} == {"none", "arc"}
    same = read_problem(["experiment=quickstart", "tune.space.clip.C.low=1"], "tune_digits", 9)
    assert same.identity == problem.identity
    other = read_problem(["experiment=quickstart", "attack=sf"], "tune_digits", 3)
    assert other.identity != problem.identity


def test_values_are_rounded_within_their_range() -> None:
    assert Range(0.01, 100.0, log=True).rounded(1.234567) == 1.235
    assert Range(0.012344, 100.0, log=True).rounded(0.0123441) == 0.012344
    assert Range(1000.01, 1000.02).rounded(1000.0134) == 1000.0134
    assert Range(1, 5, integer=True).rounded(3) == 3
