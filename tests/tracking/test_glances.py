"""Glances at runs say what MLflow says of them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lit_byz.config.grid import Point
from lit_byz.tracking import tables
from lit_byz.tracking.glances import Glance, glances, last_values, shortened
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.store import IDENTITY, KIND, SETTINGS
from tests.tracking._kinds import as_mlflow_says, runs_of_every_kind
from tests.tracking._ledgers import make_ledger
from tests.tracking._stores import new_store

ALL = ("lit_byz.*", "mlflow.*"), ("test/*", "val/*", "honest/max_norm")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kinds")


@pytest.fixture(scope="module")
def points(folder: Path) -> list[Point]:
    return runs_of_every_kind(new_store(folder))


@pytest.fixture(params=["tables", "server"])
def ledger(request: pytest.FixtureRequest, points: list[Point], folder: Path) -> Ledger:
    """The store's tables, and MLflow's own way, which is that of servers."""
    found = make_ledger(folder)
    if request.param == "tables":
        return found
    return replace(found, store=replace(found.store, uri="another kind of store"))


@pytest.fixture(params=[0, 100], ids=["at once", "by name"], autouse=True)
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FEW", request.param)


def test_they_are_what_mlflow_has(ledger: Ledger, points: Sequence[Point]) -> None:
    """The same runs, in the same order, with the same tags and numbers; nan and inf among them."""
    whole = ledger.store.search(ledger.experiment_id, f"tags.`{KIND}` = 'run'")
    expected = [shortened(run, *ALL) for run in whole]
    assert len(expected) == 17
    place = (ledger.store, ledger.experiment_id)
    codes = {run.data.tags[IDENTITY] for run in whole} | {"nothing"}
    found = glances(*place, IDENTITY, codes, tags=ALL[0], metrics=ALL[1])
    assert _in_order(found) == _in_order(expected)
    assert glances(*place, IDENTITY, []) == []
    assert glances(*place, IDENTITY, ["nothing"]) == []
    one = points[7].identity
    three = [seen for seen in expected if seen.tags[IDENTITY] == one]
    assert len(three) == 3
    assert glances(*place, IDENTITY, [one], tags=ALL[0], metrics=ALL[1]) == three
    (bare,) = glances(*place, IDENTITY, [points[0].identity])
    assert (bare.tags, bare.metrics) == ({IDENTITY: points[0].identity}, {})


def _in_order(found: Sequence[Glance]) -> list[str]:
    """As texts, in which nan is nan; those of one identity keep their order."""
    ordered = sorted(found, key=lambda seen: seen.tags[IDENTITY])
    return [
        repr(replace(s, tags=dict(sorted(s.tags.items())), metrics=dict(sorted(s.metrics.items()))))
        for s in ordered
    ]


def test_outcomes_are_the_same(ledger: Ledger, points: Sequence[Point]) -> None:
    found = ledger.look_up(points)
    assert found == as_mlflow_says(ledger, points)
    outcomes = [found[point.identity].outcome for point in points]
    statuses = [None if outcome is None else outcome.status for outcome in outcomes]
    assert statuses == [
        *("finished", "diverged", "bounded", "failed", "interrupted", "interrupted"),
        *("interrupted", "finished", None, "finished", None, "finished", "bounded"),
        *("interrupted", None, None),
    ]
    outcomes_by_identity, metrics = ledger.known({point.identity for point in points})
    assert outcomes_by_identity[points[0].identity] == outcomes[0]
    assert metrics[points[0].identity] == {"test/max_accuracy": 0.5, "honest/max_norm": 3.0}


def test_tags_by_how_they_begin(ledger: Ledger, points: Sequence[Point]) -> None:
    (seen,) = glances(
        ledger.store,
        ledger.experiment_id,
        SETTINGS,
        [points[0].code.settings],
        tags=["lit_byz.s*"],
        metrics=["honest*"],
    )
    assert set(seen.tags) == {SETTINGS, "lit_byz.status"}
    assert set(seen.metrics) == {"honest/max_norm"}


def test_tables_are_read_where_the_address_says_so() -> None:
    yes = ["sqlite:///a.db", "postgresql://a/b", "postgresql+psycopg2://a/b"]
    no = ["http://a", "mysql://a/b", "file:///a", "databricks"]
    assert [tables.is_read(uri) for uri in yes + no] == [True] * 3 + [False] * 4


def test_last_values_of_runs_with_params(ledger: Ledger) -> None:
    client, place = ledger.store.client, (ledger.store, ledger.experiment_id)
    for model, speed in (("one", 3.0), ("another", 5.0)):
        run_id = client.create_run(ledger.experiment_id).info.run_id
        client.log_param(run_id, "dataset.name", "some")
        client.log_param(run_id, "model.name", model)
        client.log_metric(run_id, "speed/x", 1.0, step=0)
        client.log_metric(run_id, "speed/x", speed, step=1)
    wanted = {"dataset.name": "some", "model.name": "one"}
    assert set(last_values(*place, "speed/x", wanted, 100)) == {3.0}
    assert last_values(*place, "speed/x", wanted, 1) == [3.0]
    assert last_values(*place, "speed/y", wanted, 100) == []
    assert last_values(*place, "speed/x", {**wanted, "model.name": "no"}, 100) == []
