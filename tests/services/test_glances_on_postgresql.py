"""Glances at runs in a PostgreSQL database, where they are read as in SQLite."""

from pathlib import Path

import pytest

from lit_byz.tracking import tables
from lit_byz.tracking.glances import glances, shortened
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.store import IDENTITY, KIND
from tests.services.test_postgresql import database
from tests.tracking._kinds import as_mlflow_says, runs_of_every_kind

pytestmark = pytest.mark.services

__all__ = ["database"]


def test_they_say_what_mlflow_says(
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    points = runs_of_every_kind(database)
    ledger = Ledger.of({"enabled": True, "uri": database, "experiment": "lit_byz"})
    whole = ledger.store.search(ledger.experiment_id, f"tags.`{KIND}` = 'run'")
    every = {run.data.tags[IDENTITY] for run in whole}
    for few in (0, 100):
        monkeypatch.setattr(tables, "FEW", few)
        assert ledger.look_up(points) == as_mlflow_says(ledger, points)
        names = ["lit_byz.*"], ["test/*", "val/*"]
        place = (ledger.store, ledger.experiment_id)
        found = glances(*place, IDENTITY, every, tags=names[0], metrics=names[1])
        expected = [shortened(run, *names) for run in whole]
        assert [(seen.run_id, seen.status, seen.began, seen.ended) for seen in found] == [
            (seen.run_id, seen.status, seen.began, seen.ended) for seen in expected
        ]
        assert [seen.tags for seen in found] == [seen.tags for seen in expected]
        assert repr([sorted(seen.metrics.items()) for seen in found]) == repr(
            [sorted(seen.metrics.items()) for seen in expected]
        )
