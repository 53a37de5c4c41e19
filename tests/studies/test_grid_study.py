"""Grids: every run once, in order; or only as far as the worst case needs them."""

import random

import pytest

from lit_byz.studies.grid import GridStudy, WorstCaseStudy
from lit_byz.tracking.outcome import Outcome
from tests.studies._simulate import by_table, grid_points, simulate

TABLE = {"sf": 0.9, "lf": 0.4, "foe": 0.6}
AXES = {"clip": ["none", "arc"], "attack": ["sf", "lf", "foe"], "seed": [1, 2]}


def test_every_run_once_and_in_order() -> None:
    found = grid_points(**AXES)
    study = GridStudy(found)
    assert simulate(study, by_table(TABLE)) == found
    assert study.board.missing == []
    for cell in study.board.cells:
        assert study.board.worst_case(cell).mean == 0.4
    assert study.propose() is None


def test_what_is_known_is_not_proposed_again() -> None:
    found = grid_points(**AXES)
    known = {p.identity: Outcome(p.identity, "finished", 0.5, reused=True) for p in found[:5]}
    failed = {found[5].identity: Outcome(found[5].identity, "failed", reused=True)}
    study = GridStudy(found, lambda points: {**known, **failed})
    assert simulate(study, by_table(TABLE)) == found[6:]
    assert [outcome.identity for outcome in study.board.failed] == [found[5].identity]
    assert study.board.missing == []


def test_an_interrupted_run_is_missing() -> None:
    study = GridStudy(grid_points(attack=["sf"]))
    proposal = study.propose()
    assert proposal is not None
    study.hear(Outcome(proposal.point.identity, "interrupted", error="killed"))
    assert study.propose() is None
    assert study.board.missing == [proposal.point]
    assert not study.board.worst_case("").exact


@pytest.mark.parametrize("width", [1, 3])
def test_worst_cases_are_those_of_the_whole_grid(width: int) -> None:
    for seed in range(20):
        chance = random.Random(seed)
        found = grid_points(**AXES)
        table = {point.identity: chance.random() for point in found}
        whole, quick = GridStudy(found), WorstCaseStudy(found)
        for study in (whole, quick):
            simulate(study, lambda point, table=table: table[point.identity], width)  # type: ignore[misc]
        for cell in whole.board.cells:
            ours, truth = quick.board.worst_case(cell), whole.board.worst_case(cell)
            assert (ours.kind, ours.bounds) == ("exact", truth.bounds)
        assert quick.facts()["worst_case_only"]


def test_the_attack_that_hurts_most_comes_first_and_bounds_the_others() -> None:
    study = WorstCaseStudy(grid_points(clip=["none", "arc"], attack=["sf", "lf", "foe"]))
    asked = simulate(study, by_table(TABLE))
    # When the second cell begins, lf is known to hurt; of foe nothing is known yet.
    assert [p.attack for p in asked if p.cell == "clip=arc"] == ["lf", "foe", "sf"]
    statuses = [study.board.outcomes[p.identity].status for p in study.board.points[3:]]
    assert sorted(statuses) == ["bounded", "bounded", "finished"]


def test_a_bound_of_an_earlier_study_counts_only_above_this_cells_minimum() -> None:
    found = grid_points(attack=["sf", "lf", "foe"])
    sf, lf, foe = (point.identity for point in found)
    known = {
        sf: Outcome(sf, "finished", 0.5, reused=True),
        lf: Outcome(lf, "bounded", 0.6, reused=True),
        foe: Outcome(foe, "bounded", 0.3, reused=True),
    }
    study = WorstCaseStudy(found, lambda points: known)
    asked = simulate(study, by_table({"foe": 0.45}))
    assert [point.attack for point in asked] == ["foe"]
    assert study.board.worst_case("").mean == 0.45
