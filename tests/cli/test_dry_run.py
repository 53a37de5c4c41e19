"""Dry runs: what there is to do at once, what it costs soon, and no longer than a signal allows."""

import importlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lit_byz import _native, train
from lit_byz.cli import tune as tuning
from lit_byz.cli.breakdown import main as breakdown
from lit_byz.cli.init_scaling import main as init_scaling
from lit_byz.cli.sweep import main as sweep
from lit_byz.config.grid import Point, points
from lit_byz.config.grid_source import read_grid
from lit_byz.execution import timing
from lit_byz.execution.estimate import Prices, estimate
from lit_byz.studies.init_scaling import gradient_point
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.tracked_costs import OVERHEAD, Cost, kinds_of
from tests.cli import _kills
from tests.tracking._stores import DATABASE, new_store

ROOT = Path(__file__).parents[2]
SMALL = ["dataset=digits", "model=logreg", "train.steps=20", "train.eval_every=10"]
# Notes how often it has gone to sleep, for this process and for others. Where a test process may be
# late, steps are timed for longer than they would be.
ASLEEP = """
import os
import time
from pathlib import Path
from lit_byz.execution import estimate
from lit_byz.robust import Rule

slept = []
estimate.PATIENCE = float(os.environ.get("TIMED_FOR", estimate.PATIENCE))

class Asleep(Rule):
    def __init__(self, seconds: float = 0.3): self.seconds = seconds
    def aggregate(self, x):
        slept.append(self.seconds)
        Path("asleep").touch()
        time.sleep(self.seconds)
        return x.mean(0)
"""


def point_of(*words: str) -> Point:
    return points(read_grid([*SMALL, "attack=sf", *words], "quickstart"))[0]


def seconds_in(text: str) -> float:
    """The time that a plan's last line tells of one process."""
    found = re.search(r": (?:at most |about )?([\d.]+) (s|min|h) of one process", text)
    assert found is not None, text
    return float(found[1]) * {"s": 1, "min": 60, "h": 3600}[found[2]]


def test_nothing_is_made_for_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert sweep([*SMALL, "clip=[none,arc]", "attack=[sf,foe]", "--dry-run"]) == 0
    count, done, cost = capsys.readouterr().out.splitlines()
    assert count == "4 runs: 2 cells, 2 attacks, 1 seed"
    assert done == "already done: 0, to do: 4"
    assert cost.startswith("estimated from a few timed steps: ")
    assert 1 < seconds_in(cost) < 120
    others = [(init_scaling, "model.init_scale=[1]"), (breakdown, "seed=1")]
    for other, words in [*others, (tuning.main, "tune.space.clip.C.high=4")]:
        assert other([*SMALL, words, "attack=[sf]", "--dry-run"]) == 0
        assert "estimated" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_costs_of_tracked_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is timed where the store knows; what it does not know is taken to be like it."""
    uri = new_store(tmp_path)
    begin = time.monotonic()
    result = train([*SMALL, "attack=sf", f"tracking.uri={uri}"])
    taken = time.monotonic() - begin
    grid = read_grid([*SMALL, "attack=[sf]", "seed=[2,3]", f"tracking.uri={uri}"], "quickstart")
    asked = points(grid)
    ledger = Ledger.of(asked[0].plain["tracking"])
    monkeypatch.setattr(timing, "time_kinds", None)
    found = estimate(asked, ledger)
    assert found.source == "from tracked runs"
    # Two such runs; a half of one's steps speaks for all of them, and may be the slower one.
    assert 2 * result.seconds - 0.1 < found.seconds < 2 * 2 * taken
    place = f"tracking.uri={uri}"
    for alike in ("clip=none", "model.init_scale=3", "train.lr=0.01"):
        assert estimate([point_of(alike, place)], ledger).source == "from tracked runs", alike
    monkeypatch.setattr(timing, "time_kinds", dear_median)
    for other in ("train.local_steps=20", "data.validation=0.5", "train.steps=1"):
        assert estimate([point_of(other, place)], ledger).source == TIMED, other
    with sqlite3.connect(tmp_path / DATABASE) as database:
        database.execute("delete from params where key='train.local_steps'")
    assert estimate(asked, ledger).source == TIMED  # who knows what that run did


TIMED = "from a few timed steps"


def dear_median(kinds: Sequence[tuple[str, Point]], seconds: float) -> dict[str, Cost]:
    """A step takes 0.1 s, or 2 s where the server takes the geometric median."""
    slow = {kind: point.plain["rule"]["name"] == "gm" for kind, point in kinds}
    return {kind: Cost(2.0 if slow[kind] else 0.1, 0.0) for kind in slow}


def test_kinds_are_what_steps_cost() -> None:
    plain = kinds_of(point_of().plain)
    for same in ("seed=5", "train.lr=0.01", "model.init_scale=3", "train.steps=40"):
        assert kinds_of(point_of(same).plain) == plain, same
    full = ["attack=none", "train.full_batch=true", "train.gradients=loop"]
    asked: list[list[str]] = [
        *([], ["model=mlp"], ["model=mlp", "model.hidden=[4000,4000]"], full),
        *([f"train.{setting}"] for setting in ("local_steps=20", "full_batch=true")),
        *(["train.gradients=loop"], ["data.validation=0.5"]),
    ]
    different = [*(point_of(*words) for words in asked), gradient_point(point_of(*full))]
    others = [kinds_of(point.plain) for point in different]
    for level in range(len(plain)):  # also where they are compared roughly
        assert len({kinds[level] for kinds in others}) == len(others)


def test_what_is_held_out_is_evaluated_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_evaluation", lambda module, _: len(module.batches.held_out))
    kinds = [(share, point_of(f"data.validation={share}")) for share in ("0", "0.5")]
    found = timing.time_kinds(kinds, 60)
    assert found["0"].evaluation == 0 < found["0.5"].evaluation


def test_evaluations_and_kept_models_are_counted() -> None:
    """The last step is evaluated, however seldom others are; images have 28 x 28 pixels."""
    point = point_of("train.eval_every=50")
    prices = Prices({kinds_of(point.plain)[0]: Cost(0.1, 1.0, 0.5)}, "")
    assert prices.of([point]).seconds == pytest.approx(20 * 0.1 + 1 + 0.5)
    assert prices.of([point_of("train.eval_every=15")]).seconds == pytest.approx(2 + 2 + 0.5)
    parameters = 4 * (28 * 28 * 10 + 10)
    for words, kept in (
        (["tracking.model=final"], 1),
        (["tracking.model=both", "tracking.mlflow_model=true"], 3),
        (["tracking.model=none", "tracking.mlflow_model=true"], 0),
    ):
        more = prices.of([point_of(*words)]).bytes - prices.of([point]).bytes
        assert more == kept * parameters, words


def test_a_run_that_may_stop_early_costs_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(timing, "time_kinds", dear_median)
    assert sweep([*SMALL, "attack=[sf,lf]", "--worst-case-only", "--dry-run"]) == 0
    assert f"estimated {TIMED}: at most 7 s of one process" in capsys.readouterr().out
    assert sweep([*SMALL, "attack=[sf,lf]", "--dry-run"]) == 0
    assert f"estimated {TIMED}: 7 s of one process" in capsys.readouterr().out


def test_trials_cost_at_most_what_the_dearest_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(timing, "time_kinds", dear_median)
    asked = [*SMALL, "attack=[sf,lf]", "tune.compare=[arc]"]
    asked += ["tune.space.train.steps.choices=[100,2000]", "tune.space.rule.choices=[cwtm,gm]"]
    asked += ["tune.space.train.lr.choices=[0.1,0.2]", f"tracking.uri={new_store(tmp_path)}"]
    assert tuning.main([*asked, "--trials", "3", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "3 trials, 3 to do" in text
    assert f"estimated {TIMED}: at most " in text
    most = 3 * 2 * (2000 * 2.0 + OVERHEAD) + 2 * (20 * 0.1 + OVERHEAD)
    assert seconds_in(text) == pytest.approx(most, rel=0.01)
    monkeypatch.setattr(tuning, "MOST_TRIALS", 3)  # of two lengths and two rules
    assert tuning.main([*asked, "--trials", "3", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "at most" not in text.splitlines()[-1]
    assert text.endswith("; if all trials have train.steps=100, train.lr=0.1, rule=cwtm\n")


@pytest.fixture
def asleep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    (tmp_path / "asleep_rules.py").write_text(ASLEEP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    return [*SMALL, "rule=asleep_rules.Asleep"]


@pytest.fixture
def slept(asleep: list[str]) -> list[float]:
    """How often the rule has slept in this process: fewer times where all else takes longer."""
    found: list[float] = importlib.import_module("asleep_rules").slept
    found.clear()
    _native.library()  # where it has to be compiled, that takes longer than any dry run
    return found


def test_time_is_limited_and_the_rest_is_said(
    asleep: list[str], slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lit_byz.execution.estimate.PATIENCE", 1.0)
    asked = points(read_grid([*asleep, "attack=[foe,alie,sf,lf]"], "quickstart"))
    begin = time.monotonic()
    found = estimate(asked)
    assert time.monotonic() - begin < 60
    assert sum(slept) < 2 * timing.ENOUGH + 2 * 0.3  # the least that the first kind has
    assert found.source.startswith("from a few timed steps, ")
    assert found.source.endswith(" of 4 kinds of runs taken to be like those")
    assert found.seconds > 4 * 20 * 0.3 / 2


def test_a_step_that_never_ends(
    asleep: list[str], slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lit_byz.execution.estimate.PATIENCE", 0.5)
    asked = points(read_grid([*asleep, "rule.seconds=1000", "attack=[sf,lf]"], "quickstart"))
    begin = time.monotonic()
    found = estimate(asked)
    assert time.monotonic() - begin < 60
    assert slept == [1000]  # nobody tries the other kind after that
    assert found.seconds >= 2 * 20 * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "codes"), [(signal.SIGTERM, (-signal.SIGTERM, 143)), (signal.SIGINT, (130,))]
)
def test_a_signal_ends_it_at_once(asleep: list[str], number: int, codes: tuple[int, ...]) -> None:
    command = [sys.executable, str(ROOT / "pipelines" / "sweep.py"), *asleep, "--dry-run"]
    command += ["rule.seconds=1000", "attack=[sf,lf,foe]"]
    told = {"PYTHONPATH": str(ROOT), "TIMED_FOR": "1000"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with _kills.started(command, env={**os.environ, **told}, **pipes) as process:
        assert process.stdout is not None
        assert any(line.startswith("estimating") for line in process.stdout)
        _kills.wait_until("a step is timed", Path("asleep").exists, 150)
        process.send_signal(number)
        assert process.wait(60) in codes
        _kills.wait_until("nobody of the group is left", partial(_kills.deserted, process.pid))


@pytest.mark.slow
def test_four_runs_cost_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path))
    asked = ["dataset=digits", "clip=[none,arc]", "attack=[sf,foe]", "train.steps=60"]
    # In seconds of a core: others may be busy while one of the two is measured.
    of_a_core = SimpleNamespace(**{**vars(time), "perf_counter": time.process_time})
    monkeypatch.setattr(timing, "time", of_a_core)
    assert sweep([*asked, "--dry-run"]) == 0
    said = seconds_in(capsys.readouterr().out)
    begin = time.process_time()
    assert sweep([*asked, "--executor", "inline", "--progress", "none"]) == 0
    taken = time.process_time() - begin
    assert taken / 5 < said < 5 * taken


def test_a_word_within_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lit_byz.cli import saying

    saying.quietly(False)
    monkeypatch.setattr(saying, "AFTER", 0.0)
    saying.now("doing something")
    (long,) = saying._waiting
    long.join(60)
    monkeypatch.setattr(saying, "AFTER", 600.0)
    saying.now("doing something short")
    (short,) = saying._waiting
    saying.over()
    short.join(60)
    assert not long.is_alive()
    assert not short.is_alive()
    assert capsys.readouterr() == ("", "doing something …\n")
    saying.quietly(True)
    saying.now("nobody hears this")
    assert saying._waiting == []
    saying.quietly(False)
