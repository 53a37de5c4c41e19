"""What the ledger says of runs that a study asks for."""

from dataclasses import replace
from pathlib import Path

import pytest

from lit_byz.config.compose import compose_plain
from lit_byz.config.grid import Point
from lit_byz.tracking import tables
from lit_byz.tracking.ledger import Found, Ledger
from tests.tracking._ledgers import begin, by_other_code, end, make_ledger, some_points

NOTHING = Found(None, [], [])


@pytest.fixture(params=[0, 20], ids=["at once", "one by one"], autouse=True)
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many runs are looked up in one reading of the store, few by their own queries."""
    monkeypatch.setattr(tables, "FEW", request.param)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return make_ledger(tmp_path)


@pytest.fixture
def point(tmp_path: Path) -> Point:
    return some_points(tmp_path, ["sf"])[0]


def look_up(ledger: Ledger, point: Point) -> Found:
    return ledger.look_up([point])[point.identity]


def test_nothing_is_there(ledger: Ledger, point: Point) -> None:
    assert look_up(ledger, point) == NOTHING


@pytest.mark.parametrize("status", ["finished", "diverged", "bounded"])
def test_results(ledger: Ledger, point: Point, tmp_path: Path, status: str) -> None:
    run_id = end(point, status, 0.5)
    outcome = look_up(ledger, point).outcome
    assert outcome is not None
    assert (outcome.status, outcome.max_accuracy, outcome.run_id) == (status, 0.5, run_id)
    assert outcome.identity == point.identity
    assert outcome.reused
    (other,) = some_points(tmp_path, ["lf"])
    assert ledger.look_up([point, other])[other.identity] == NOTHING


def test_a_result_counts_before_a_bound_and_that_before_a_failure(
    ledger: Ledger, point: Point
) -> None:
    for status, accuracy in (("interrupted", None), ("failed", None), ("bounded", 0.4)):
        end(point, status, accuracy)
        outcome = look_up(ledger, point).outcome
        assert outcome is not None
        assert outcome.status == status
    end(point, "finished", 0.5)
    end(point, "bounded", 0.45)
    end(point, "failed")
    outcome = look_up(ledger, point).outcome
    assert outcome is not None
    assert (outcome.status, outcome.max_accuracy) == ("finished", 0.5)


def test_a_failure_keeps_its_reason(ledger: Ledger, point: Point) -> None:
    end(point, "failed")
    outcome = look_up(ledger, point).outcome
    assert outcome is not None
    assert (outcome.status, outcome.error) == ("failed", "RuntimeError: it broke")


def test_a_failure_in_another_environment_does_not_count(ledger: Ledger, point: Point) -> None:
    """The data may be where it was looked for now, or the batch small enough."""
    end(point, "failed")
    elsewhere = replace(point, plain=compose_plain(["data.root=elsewhere"], beneath=point.plain))
    assert elsewhere.identity == point.identity
    assert look_up(ledger, elsewhere).outcome is None
    assert look_up(ledger, point).outcome is not None
    end(elsewhere, "failed")
    assert look_up(ledger, elsewhere).outcome is not None
    end(point, "finished", 0.5)  # a result is one wherever it was computed
    outcome = look_up(ledger, elsewhere).outcome
    assert outcome is not None
    assert outcome.complete


def test_runs_that_have_not_ended(ledger: Ledger, point: Point) -> None:
    runs = {begin(point), begin(point)}
    found = look_up(ledger, point)
    assert set(found.begun) == runs
    assert found.outcome is not None
    assert found.outcome.status == "interrupted"


def test_runs_of_other_code_are_no_results(ledger: Ledger, point: Point) -> None:
    end(by_other_code(point), "finished", 0.5)
    assert look_up(ledger, point) == Found(None, [], ["numerics 0"])
    end(point, "finished", 0.6)
    found = look_up(ledger, point)
    assert found.outcome is not None
    assert found.outcome.max_accuracy == 0.6
    assert found.other_code == ["numerics 0"]
    other = look_up(ledger, by_other_code(point))
    assert other.outcome is not None
    assert other.outcome.max_accuracy == 0.5
    assert other.other_code == [point.code.code]


def test_a_finished_run_without_a_number_is_none(ledger: Ledger, point: Point) -> None:
    end(point, "finished", None)
    outcome = look_up(ledger, point).outcome
    assert outcome is not None
    assert not outcome.settled


def test_a_run_that_is_gone_on_with_counts_once_it_has_ended(ledger: Ledger, point: Point) -> None:
    end(point, "bounded", 0.3)
    (run,) = ledger.store.find(ledger.experiment_id, point.identity)
    ledger.store.client.update_run(run.info.run_id, status="RUNNING")
    found = look_up(ledger, point)
    assert found.begun == [run.info.run_id]
    assert found.outcome is not None
    assert found.outcome.status == "interrupted"
