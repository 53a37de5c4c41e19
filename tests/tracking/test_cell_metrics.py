"""A cell's metrics: what is known of its worst case, whatever is missing."""

from pathlib import Path

import pytest

from tests.tracking._ledgers import (
    STUDY,
    end,
    make_ledger,
    outcomes_of,
    record_of,
    some_points,
)


def test_what_is_known_of_a_cell_with_a_failed_run(tmp_path: Path) -> None:
    """The seeds that are complete have their worst cases, and the others count at both ends."""
    found = some_points(tmp_path, seed=[1, 2])
    accuracies = {("sf", 1): 0.8, ("sf", 2): 0.7, ("foe", 1): 0.6}
    for point in found:
        value = accuracies.get((point.attack, point.seed))
        end(point, "failed" if value is None else "finished", value)
    ledger, record = make_ledger(tmp_path), record_of(found)
    ledger.open_study(STUDY)
    run_id = ledger.open_cell(record, found)
    ledger.write_cell(record, outcomes_of(ledger, found), last=True)
    metrics = ledger.store.client.get_run(run_id).data.metrics
    assert metrics["worst_case/seed_1"] == 0.6
    assert "worst_case/seed_2" not in metrics
    assert metrics["worst_case/at_least"] == pytest.approx((0.6 + 0) / 2)
    assert metrics["worst_case/at_most"] == pytest.approx((0.6 + 0.7) / 2)
    assert "worst_case/max_accuracy" not in metrics
