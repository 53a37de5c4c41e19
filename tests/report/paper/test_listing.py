"""The catalogue's list: what is left, how long it takes, and how that is known."""

import json
from pathlib import Path

import pytest

from lit_byz._machine import machine
from lit_byz.config import sources
from lit_byz.report.paper.experiment import Experiment, catalogue, find
from lit_byz.report.paper.listing import (
    COMPUTED,
    EXAMPLES,
    MEASURED,
    PARTLY,
    SPEED,
    STEPS,
    listed,
    table,
)
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.store import IDENTITY, KIND, MACHINE
from lit_byz.tracking.tracked_costs import Cost
from tests.report.paper._small import draw, furnish


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return furnish(tmp_path, monkeypatch)


def no_speeds(dataset: str, model: str) -> list[float]:
    return []


def untimed(name: str) -> Experiment:
    """An experiment of the small paper whose seconds are computed, two for each step."""
    path = Path("configs/experiment/paper") / f"{name}.yaml"
    text = path.read_text().replace("seconds: 1\n", "seconds: 24\n  timed: false\n")
    path.write_text(text)
    return find(f"paper/{name}")


def test_all_is_the_sum_over_distinct_runs(here: Path) -> None:
    chosen = [find("paper/lines"), find("paper/table"), find("paper/bars")]
    made = listed(chosen, {}, {}, no_speeds)
    distinct = {point.identity for e in chosen for point in e.points}
    assert made.all.runs == len(distinct) < sum(tally.runs for _, tally in made.entries)
    assert made.all.seconds == pytest.approx(len(distinct))  # one second each
    last = table(made).rows[-1]
    assert last[0] == "all"
    assert last[6:] == ["0.0", "0.0", MEASURED]


def test_without_runs_of_a_model_its_time_is_computed(here: Path) -> None:
    experiment = untimed("table")
    points = experiment.points
    made = listed([experiment, find("paper/bars")], {}, {}, no_speeds)
    assert made.entries[0][1].times == COMPUTED
    assert made.all.times == PARTLY
    assert made.entries[0][1].seconds == pytest.approx(24 * len(points))
    # A run of six steps takes half as long as one of the file's twelve.
    shorter = find("paper/table", ["train.steps=6"])
    assert listed([shorter], {}, {}, no_speeds).all.seconds == pytest.approx(12 * len(points))


def test_runs_of_the_model_say_how_long_it_takes(here: Path) -> None:
    experiment = untimed("table")
    first, *others = experiment.points
    outcomes = {first.identity: Outcome(first.identity, "finished", 0.5)}
    own = listed([experiment], outcomes, {first.identity: {SPEED: 4.0}}, no_speeds)
    assert own.all.seconds == pytest.approx(len(others) * 12 / 4)
    assert (own.all.done, own.all.times) == (1, STEPS)
    # 480 examples a second are ten steps of six workers with eight images each.
    asked = []

    def speeds(dataset: str, model: str) -> list[float]:
        asked.append((dataset, model))
        return [480.0]

    others_of_the_store = listed([experiment], {}, {}, speeds)
    assert others_of_the_store.all.seconds == pytest.approx(len(experiment.points) * 12 / 10)
    assert others_of_the_store.all.times == STEPS
    assert asked == [("digits", "logreg")]


def test_evaluations_take_time_too(here: Path) -> None:
    """Three in twelve steps; where nobody knows how long one takes, that is said."""
    experiment = untimed("table")
    first, *others = experiment.points
    known = {first.identity: Outcome(first.identity, "finished", 0.5)}
    speed = {first.identity: {SPEED: 4.0}}
    made = listed([experiment], known, speed, no_speeds, lambda point: Cost(0.0, 2.0, 1.0))
    assert made.all.seconds == pytest.approx(len(others) * (12 / 4 + 3 * 2 + 1))
    assert made.all.times == MEASURED
    last = others[-1].identity
    some = listed(
        *([experiment], known, speed, no_speeds),
        lambda point: None if point.identity == last else Cost(0.0, 2.0, 1.0),
    )
    assert some.all.times == STEPS


def test_the_store_says_how_long_evaluations_take(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of ten tracked seconds, three went to twelve steps, others to three evaluations."""
    experiment = untimed("table")
    first, *others = experiment.points
    ledger = Ledger.of(first.plain["tracking"])
    client = ledger.store.client
    run_id = client.create_run(ledger.experiment_id, start_time=1_000).info.run_id
    ledger.store.write_params(run_id, first.plain)
    tags = {KIND: "run", IDENTITY: first.identity, MACHINE: machine()}
    ledger.store.write(run_id, {SPEED: 4.0, EXAMPLES: 192.0, "test/max_accuracy": 0.5}, tags)
    client.set_terminated(run_id, end_time=11_000)
    assert draw("list", "paper/table", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["done"], found["times"]) == (1, MEASURED)
    assert found["core_hours_left"] == pytest.approx(len(others) * 10 / 3600)


def test_the_store_is_asked_for_runs_of_the_model(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = untimed("table")

    def read() -> dict[str, object]:
        assert draw("list", "paper/table", "--json") == 0
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    runs = len(experiment.points)
    before = read()
    assert (before["runs"], before["times"]) == (runs, COMPUTED)
    assert before["core_hours_left"] == pytest.approx(24 * runs / 3600)
    assert draw("list", "paper/table") == 0
    printed = capsys.readouterr().out
    assert COMPUTED in printed
    assert "from the operations of a step" in printed
    ledger = Ledger.of({"enabled": True, "uri": None, "experiment": "lit_byz"})
    store = ledger.store
    for model, speed in (("logreg", 480.0), ("mlp", 1.0)):
        run = store.client.create_run(ledger.experiment_id)
        settings = {"dataset": {"name": "digits"}, "model": {"name": model}}
        store.write_params(run.info.run_id, settings)
        store.write_metrics(run.info.run_id, {EXAMPLES: speed})
    after = read()
    assert after["times"] == STEPS
    assert draw("list", "paper/table") == 0
    assert "steps measured: evaluations come on top" in capsys.readouterr().out
    assert after["core_hours_left"] == pytest.approx(runs * 1.2 / 3600)


def test_what_nobody_timed_is_called_computed() -> None:
    """CIFAR-10 was too slow to be timed where the catalogue was written."""
    for experiment in catalogue():
        if experiment.seconds:
            content = sources.experiment(experiment.name).content
            assert experiment.timed == (content["dataset"] != "cifar10"), experiment.name
            assert experiment.steps == content["train"]["steps"] > 0
