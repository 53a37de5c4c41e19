"""The end of runs beside their maximum: by the same rules, and never made up."""

from pathlib import Path

import pytest

from lit_byz.tracking import Tracker
from lit_byz.tracking.cells import metrics_of
from lit_byz.tracking.evaluations import means
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import CellRecord, CellResult, PlannedRun
from tests.tracking._ledgers import end, make_ledger, some_points


def test_the_mean_of_the_last_five() -> None:
    six = list(enumerate([0.9, 0.1, 0.2, 0.3, 0.4, 0.5]))
    assert means({"test/accuracy": six}, "finished") == {"test/mean_last_5": pytest.approx(0.3)}
    found = means({"test/accuracy": [(9, 0.2), (19, 0.4)], "test/loss": [(9, 1.0)]}, "finished")
    assert found == {"test/mean_last_5": pytest.approx(0.3)}
    assert means({"test/accuracy": []}, "finished") == {}


def test_a_run_that_diverged_has_no_mean_of_better_times() -> None:
    history = {"test/accuracy": [(49, 0.6), (99, 0.7), (107, 0.1)], "val/accuracy": [(107, 0.2)]}
    expected = {"test/mean_last_5": 0.1, "val/mean_last_5": 0.2}
    assert means(history, "diverged") == expected


def test_nor_has_one_that_recorded_it(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    (point,) = some_points(tmp_path, ("sf",))
    tracker = Tracker(ledger.store, end(point, "diverged", 0.7))
    tracker.log_metrics({"test/accuracy": 0.1, "test/mean_last_5": 0.5}, 107)
    tracker.save()
    outcome = ledger.look_up([point])[point.identity].outcome
    assert outcome is not None
    assert (outcome.last_accuracy, outcome.mean_last) == (0.1, 0.1)


def cell(*outcomes: Outcome | None) -> CellResult:
    """One seed, an attack for each outcome."""
    runs = [PlannedRun(f"attack {i}", 1, str(i), 40) for i in range(len(outcomes))]
    known = {str(i): outcome for i, outcome in enumerate(outcomes) if outcome is not None}
    return CellResult(CellRecord("a cell", runs), known)


def finished(identity: str, best: float, last: float, mean: float | None) -> Outcome:
    return Outcome(identity, "finished", best, last_accuracy=last, mean_last=mean)


def test_each_measure_has_its_own_worst_attack() -> None:
    found = cell(finished("0", 0.9, 0.3, 0.5), finished("1", 0.8, 0.7, 0.6)).worst_cases
    assert {name: worst.mean for name, worst in found.items()} == {
        **{"max_accuracy": 0.8, "last_accuracy": 0.3, "mean_last": 0.5}
    }
    assert {worst.kind for worst in found.values()} == {"exact"}


@pytest.mark.parametrize(
    ("other", "kinds"),
    [
        (None, ("at most", "at most", "at most")),
        (Outcome("1", "failed"), ("at most", "at most", "at most")),
        # How it would have ended nobody knows; its maximum is no smaller.
        (Outcome("1", "bounded", 0.95, last_accuracy=0.95), ("exact", "at most", "at most")),
        (finished("1", 0.95, 0.9, None), ("exact", "exact", "at most")),
    ],
)
def test_what_is_not_known_is_a_bound(other: Outcome | None, kinds: tuple[str, ...]) -> None:
    made = cell(finished("0", 0.9, 0.3, 0.5), other)
    assert tuple(worst.kind for worst in made.worst_cases.values()) == kinds
    metrics = metrics_of(made)
    assert ("worst_case/mean_last_5" in metrics) == (kinds[2] == "exact")


def test_a_cell_says_them_in_mlflow() -> None:
    metrics = metrics_of(cell(finished("0", 0.9, 0.3, 0.5), finished("1", 0.8, 0.7, 0.6)))
    assert metrics["worst_case/max_accuracy"] == 0.8
    assert metrics["worst_case/last_accuracy"] == 0.3
    assert metrics["worst_case/mean_last_5"] == 0.5
    assert not [name for name in metrics if name.endswith("_std")]  # of one seed: there is none


def test_runs_of_before_have_what_their_series_says(tmp_path: Path) -> None:
    """And one without a series has none: it is not zero."""
    ledger = make_ledger(tmp_path)
    known, bare, new = some_points(tmp_path, ("sf", "foe", "lf"))
    for point, series in ((known, [0.2, 0.9, 0.5, 0.5, 0.5, 0.6]), (bare, []), (new, [0.4])):
        run_id = end(point, "finished", 0.9)
        tracker = Tracker(ledger.store, run_id)
        for step, accuracy in enumerate(series):
            tracker.log_metrics({"test/accuracy": accuracy}, step)
        if point is new:
            tracker.log_metrics({"test/mean_last_5": 0.123}, 5)
        tracker.save()
    found = {i: entry.outcome for i, entry in ledger.look_up([known, bare, new]).items()}
    assert found[known.identity].mean_last == pytest.approx(0.6)  # type: ignore[union-attr]
    assert found[known.identity].last_accuracy == 0.6  # type: ignore[union-attr]
    assert found[bare.identity].mean_last is None  # type: ignore[union-attr]
    assert found[bare.identity].last_accuracy is None  # type: ignore[union-attr]
    assert found[new.identity].mean_last == 0.123  # type: ignore[union-attr]
