"""The ledger: what a study, its cells and their worst cases are in a real store."""

from dataclasses import replace
from pathlib import Path

import pytest
from mlflow.entities import Run

from lit_byz.config.grid import Point
from lit_byz.errors import BadRequest
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.store import claim_on
from tests.tracking._ledgers import (
    STUDY,
    begin,
    end,
    make_ledger,
    outcomes_of,
    record_of,
    some_points,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = make_ledger(tmp_path)
    made.open_study(STUDY)
    return made


def written(ledger: Ledger, points: list[Point], **facts: object) -> Run:
    """A cell's own run after the last writing."""
    record = record_of(points, **facts)
    run_id = ledger.open_cell(record, points)
    ledger.write_cell(record, outcomes_of(ledger, points), last=True)
    return ledger.store.client.get_run(run_id)


def test_a_complete_cell(ledger: Ledger, tmp_path: Path) -> None:
    four = some_points(tmp_path, seed=[1, 2])
    for point, accuracy in zip(four, (0.9, 0.6, 0.5, 0.7), strict=True):
        end(point, "finished", accuracy)
    cell = written(ledger, four)
    assert cell.info.status == "FINISHED"
    assert cell.data.metrics["worst_case/max_accuracy"] == pytest.approx(0.55)
    assert cell.data.metrics["worst_case/max_accuracy_std"] == pytest.approx(0.1 / 2**0.5)
    assert cell.data.metrics["worst_case/seed_1"] == 0.5
    assert cell.data.metrics["worst_case/seed_2"] == 0.6
    assert cell.data.metrics["worst_case/runs"] == 4
    assert cell.data.tags["lit_byz.worst_case"] == "exact"


def test_a_cell_with_a_failed_run(ledger: Ledger, tmp_path: Path) -> None:
    """What the other attacks left is an upper bound, and is not called the worst case."""
    sf, foe = some_points(tmp_path)
    end(sf, "finished", 0.8)
    end(foe, "failed")
    cell = written(ledger, [sf, foe])
    assert cell.info.status == "FAILED"
    assert cell.data.metrics["worst_case/at_most"] == 0.8
    assert cell.data.metrics["worst_case/failed"] == 1
    assert "worst_case/max_accuracy" not in cell.data.metrics
    assert not [name for name in cell.data.metrics if name.startswith("worst_case/seed")]
    assert cell.data.tags["lit_byz.worst_case"] == "at most 0.8000: foe, seed 1 failed"


def test_a_cell_without_any_result(ledger: Ledger, tmp_path: Path) -> None:
    both = some_points(tmp_path)
    for point in both:
        end(point, "failed")
    cell = written(ledger, both)
    assert cell.info.status == "FAILED"
    assert cell.data.tags["lit_byz.worst_case"] == "unknown: sf, seed 1 failed; foe, seed 1 failed"
    assert cell.data.metrics == {
        "worst_case/failed": 2,
        "worst_case/missing": 0,
        "worst_case/runs": 0,
    }


def test_a_cell_whose_minimum_is_only_bounded(ledger: Ledger, tmp_path: Path) -> None:
    sf, foe = some_points(tmp_path)
    end(sf, "bounded", 0.7)
    end(foe, "finished", 0.8)
    cell = written(ledger, [sf, foe])
    assert cell.info.status == "FINISHED"
    assert cell.data.metrics["worst_case/at_least"] == 0.7
    assert "worst_case/max_accuracy" not in cell.data.metrics
    assert cell.data.metrics["worst_case/at_most"] == 0.8
    assert cell.data.tags["lit_byz.worst_case"] == "at least 0.7000: runs were stopped early"


def test_a_bound_that_does_not_matter(ledger: Ledger, tmp_path: Path) -> None:
    sf, foe = some_points(tmp_path)
    end(sf, "bounded", 0.7)
    end(foe, "finished", 0.6)
    cell = written(ledger, [sf, foe])
    assert cell.data.metrics["worst_case/max_accuracy"] == 0.6
    assert cell.data.tags["lit_byz.worst_case"] == "exact"


@pytest.mark.parametrize("begun", [False, True])
def test_an_interrupted_cell(ledger: Ledger, tmp_path: Path, begun: bool) -> None:
    sf, foe = some_points(tmp_path)
    end(sf, "finished", 0.8)
    if begun:
        end(foe, "interrupted")
    cell = written(ledger, [sf, foe])
    assert cell.info.status == "KILLED"
    assert cell.data.metrics["worst_case/at_most"] == 0.8
    assert cell.data.metrics["worst_case/missing"] == 1
    assert cell.data.tags["lit_byz.worst_case"] == "at most 0.8000: 1 run missing"


def test_a_decided_cell_needs_no_more(ledger: Ledger, tmp_path: Path) -> None:
    sf, foe = some_points(tmp_path)
    end(sf, "finished", 0.2)
    cell = written(ledger, [sf, foe], decided=True)
    assert cell.info.status == "FINISHED"
    assert cell.data.metrics["worst_case/at_most"] == 0.2
    assert "worst_case/max_accuracy" not in cell.data.metrics
    assert cell.data.tags["lit_byz.worst_case"] == "at most 0.2000: 1 run not needed"


def test_a_cell_has_the_settings_that_its_runs_share(ledger: Ledger, tmp_path: Path) -> None:
    """Not those of the first: seeds of a mix follow the run's."""
    points = some_points(tmp_path, mix=["bucketing"], seed=[1, 2])
    params = written(ledger, points).data.params
    assert params["mix.name"] == "bucketing"
    assert params["mix.s"] == "2"
    assert not {"mix.seed", "seed", "attack.name"} & set(params)


def test_a_cell_ends_when_its_worst_case_is_known(ledger: Ledger, tmp_path: Path) -> None:
    """While runs are missing it is shown as going on; a bound of before is not left behind."""
    sf, foe = both = some_points(tmp_path)
    run_id = ledger.open_cell(record_of(both), both)
    for point, accuracy, status in ((sf, 0.8, "RUNNING"), (foe, 0.3, "FINISHED")):
        end(point, "finished", accuracy)
        ledger.write_cell(record_of(both), outcomes_of(ledger, both))
        cell = ledger.store.client.get_run(run_id)
        assert cell.info.status == status
        assert cell.data.metrics["worst_case/at_most"] == accuracy
    assert cell.data.metrics["worst_case/max_accuracy"] == 0.3


def test_a_cell_is_found_again_with_its_settings(ledger: Ledger, tmp_path: Path) -> None:
    both = some_points(tmp_path)
    run_id = ledger.open_cell(record_of(both), both)
    cell = ledger.store.client.get_run(run_id)
    assert cell.data.tags["mlflow.parentRunId"] == ledger.study_id
    assert cell.data.tags["lit_byz.kind"] == "cell"
    assert cell.data.params["rule.name"] == "cwtm"
    assert not [key for key in cell.data.params if key.startswith(("attack", "seed"))]
    again = make_ledger(tmp_path)
    assert again.open_study(STUDY) == ledger.study_id
    assert again.open_cell(record_of(both), both) == run_id
    other = make_ledger(tmp_path)
    assert other.open_study(replace(STUDY, key="another")) != ledger.study_id
    assert other.open_cell(record_of(both), both) != run_id


def test_how_a_study_ends(ledger: Ledger) -> None:
    for complete, failed, status in (
        (True, False, "FINISHED"),
        (True, True, "FAILED"),
        (False, True, "KILLED"),
    ):
        record = replace(STUDY, facts={"dataset": "digits", "found": status})
        ledger.close_study(record, complete=complete, failed=failed)
        run = ledger.store.client.get_run(str(ledger.study_id))
        assert run.info.status == status
        assert ledger.earlier(STUDY.key) == record
    assert ledger.earlier("never opened") is None


def test_a_result_is_what_the_store_has(ledger: Ledger, tmp_path: Path) -> None:
    """Read by another process: runs of other studies count, and the cells keep their order."""
    points = some_points(tmp_path, clip=["none", "arc"])
    cells = [[p for p in points if p.cell == f"clip={name}"] for name in ("none", "arc")]
    for place, cell in reversed(list(enumerate(cells))):
        record = record_of(cell, place=place)
        cell_id = ledger.open_cell(record, cell)
        end(cell[0], "finished", 0.4 + place / 10, cell_id)
    end(cells[0][1], "diverged", 0.1)  # below no cell of this study
    result = make_ledger(tmp_path).result(str(ledger.study_id))
    assert result.record == STUDY
    assert [cell.name for cell in result.cells] == ["clip=none", "clip=arc"]
    assert result.cells[0].worst_case.mean == 0.1
    assert result.cells[1].worst_case.kind == "at most"
    assert [run.attack for _, run in result.missing] == ["foe"]
    first = points[0].identity
    assert result.cells[0].metrics[first]["honest/max_norm"] == 3.0
    assert all(outcome.reused for outcome in result.cells[0].outcomes.values())


def test_results_of_what_is_no_study(ledger: Ledger, tmp_path: Path) -> None:
    run_id = end(some_points(tmp_path)[0], "finished", 0.5)
    for wrong in (run_id, "nothing"):
        with pytest.raises(BadRequest, match=f"run {wrong}: is no sweep and no study"):
            ledger.result(wrong)


def test_the_newest_study_is_the_one_that_was_worked_on_last(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    with pytest.raises(BadRequest, match="there is no sweep and no study yet"):
        ledger.newest()
    first = ledger.open_study(STUDY)
    assert ledger.newest() == first
    ledger.close_study(STUDY, complete=True, failed=False)
    second = ledger.open_study(replace(STUDY, kind="breakdown", key="another"))
    ledger.open_cell(record_of(some_points(tmp_path)), some_points(tmp_path))
    assert ledger.newest() == second
    again = make_ledger(tmp_path)
    again.open_study(STUDY)
    again.close_study(STUDY, complete=True, failed=False)
    assert make_ledger(tmp_path).newest() == first


def test_files_and_numbers_of_a_study(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "table.txt").write_text("a table")
    run_id = str(ledger.study_id)
    ledger.keep(run_id, [tmp_path / "table.txt"], {"worst_case/clip=arc, C": 0.5}, {"a": "b"})
    run = ledger.store.client.get_run(run_id)
    assert run.data.metrics == {"worst_case/clip_arc_ C": 0.5}
    assert run.data.tags["a"] == "b"
    assert [item.path for item in ledger.store.client.list_artifacts(run_id)] == ["table.txt"]


def test_killed_runs_that_are_not_needed_any_more_are_ended(ledger: Ledger, tmp_path: Path) -> None:
    """A killed run is still shown as one that is on; a study that drops it says that it is not."""
    killed, busy, ended, other = points = some_points(tmp_path, ["sf", "lf", "foe", "alie"])
    runs = [begin(point) for point in points]
    begun = {identity: found.begun for identity, found in ledger.look_up(points).items()}
    assert [list(begun[point.identity]) for point in points] == [[run] for run in runs]
    ledger.store.client.set_terminated(runs[2], "FINISHED")  # by another process, meanwhile
    with ledger.store.alone(claim_on(busy.identity)):
        for point in (killed, busy, ended):
            ledger.end_killed(point, begun[point.identity])
        ledger.end_killed(other, ())
    statuses = [ledger.store.client.get_run(run).info.status for run in runs]
    assert statuses == ["KILLED", "RUNNING", "FINISHED", "RUNNING"]
    claim = ledger.store.claims.take(claim_on(killed.identity))
    assert claim is not None  # nobody holds it
    claim.give_back()


def test_a_study_needs_a_store() -> None:
    with pytest.raises(BadRequest, match=r"tracking\.enabled = False: a study keeps its runs"):
        Ledger.of({"enabled": False, "uri": None, "experiment": "lit_byz"})


def test_a_study_that_says_it_all_is_not_written_again(ledger: Ledger, tmp_path: Path) -> None:
    """Nor are its cells; whatever is new is, and so is a study that is not the newest."""
    points = some_points(tmp_path, clip=["none", "arc"])
    cells = [[p for p in points if p.cell == f"clip={name}"] for name in ("none", "arc")]
    every = [(record_of(cell, place=place), cell) for place, cell in enumerate(cells)]
    for point in points:
        end(point, "finished", 0.5)

    def work() -> dict[str, int]:
        again = make_ledger(tmp_path)
        again.open_study(STUDY)
        again.write_cells(every, outcomes_of(again, points))
        again.close_study(STUDY, complete=True, failed=False)
        seen = again.store.search(again.experiment_id, "tags.`lit_byz.kind` != 'run'")
        assert {run.info.status for run in seen} == {"FINISHED"}
        return {run.info.run_name: run.info.end_time for run in seen}

    first = work()
    assert set(first) == {STUDY.name, "clip=none", "clip=arc"}
    assert work() == first
    end(points[0], "finished", 0.4)  # another attempt, which counts as it is newer
    second = work()
    assert second["clip=none"] > first["clip=none"]
    assert second[STUDY.name] > first[STUDY.name]
    assert second["clip=arc"] == first["clip=arc"]
    other = make_ledger(tmp_path)
    other.open_study(replace(STUDY, key="another", name="another"))
    other.close_study(replace(STUDY, key="another", name="another"), complete=True, failed=False)
    third = work()
    assert third[STUDY.name] > second[STUDY.name]
    assert make_ledger(tmp_path).newest() == str(ledger.study_id)


def test_files_that_are_kept_are_not_kept_again(ledger: Ledger, tmp_path: Path) -> None:
    path, run_id = tmp_path / "table.txt", str(ledger.study_id)
    path.write_text("a table")
    ledger.keep(run_id, [path], {"a": 0.5}, {"b": "c"})
    (kept,) = (tmp_path / "artifacts").rglob("table.txt")
    before = kept.stat().st_ino, kept.stat().st_mtime_ns
    ledger.keep(run_id, [path], {"a": 0.5}, {"b": "c"})
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == before
    assert len(ledger.store.history(run_id, "a")) == 1
    path.write_text("another")
    ledger.keep(run_id, [path], {"a": 0.6}, {"b": "d"})
    assert kept.read_text() == "another"
    run = ledger.store.client.get_run(run_id)
    assert (run.data.metrics["a"], run.data.tags["b"]) == (0.6, "d")
