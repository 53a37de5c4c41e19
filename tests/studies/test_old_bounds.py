"""Runs that an earlier study stopped: their bounds may not be enough for this one."""

from collections.abc import Mapping, Sequence
from typing import Any

from lit_byz.config.grid import Grid, Point
from lit_byz.execution.board import Board
from lit_byz.studies.breakdown import BreakdownStudy, make_arms, make_breakdown
from lit_byz.studies.tuning import TuningStudy
from lit_byz.tracking.outcome import Outcome
from tests.studies._simulate import BASE, Accuracy, simulate
from tests.studies.test_tuning_study import ListedTrials, problem


def breakdown(seeds: Sequence[int], known: Mapping[str, Outcome], threshold: float = 0.5) -> Any:
    axes: dict[str, list[Any]] = {"attack": ["sf", "lf"], "seed": list(seeds)}
    arms = make_arms(Grid(BASE, axes=axes), 1)
    return make_breakdown(arms, threshold, decide_only=True, recall=recalling(known))


def recalling(known: Mapping[str, Outcome]) -> Any:
    return lambda points: {p.identity: known[p.identity] for p in points if p.identity in known}


def by_seed(point: Point) -> float:
    return {1: 0.8, 2: 0.3}[point.seed]


def answer(study: BreakdownStudy, accuracy: Accuracy) -> tuple[dict[str, Any], int]:
    asked = simulate(study, accuracy)
    found: dict[str, Any] = study.facts()["arms"][""]
    return found, len(asked)


def test_more_seeds_than_before_are_decided() -> None:
    """Seed 1 was stopped at the threshold; with seed 2 its exact worst case is needed."""
    first = breakdown([1], {})
    assert answer(first, by_seed) == ({"breakdown": None, "decided": True}, 2)
    assert {outcome.status for outcome in first.board.outcomes.values()} == {"bounded"}
    second = breakdown([1, 2], first.board.outcomes)
    found, asked = answer(second, by_seed)
    assert found == {"breakdown": None, "decided": True}  # (0.8 + 0.3) / 2 is above 0.5
    assert asked == 4
    again = breakdown([1, 2], second.board.outcomes)
    assert answer(again, by_seed) == (found, 0)


def test_a_higher_threshold_is_decided() -> None:
    first = breakdown([1], {})
    answer(first, by_seed)
    higher = breakdown([1], first.board.outcomes, 0.9)
    found, _ = answer(higher, by_seed)
    assert found == {"breakdown": 1, "decided": True}


def test_what_trials_are_compared_with_is_known_exactly() -> None:
    asked = problem()
    compared = asked.comparisons()
    known = {p.identity: Outcome(p.identity, "bounded", 0.2, reused=True) for p in compared}
    study = TuningStudy(asked, ListedTrials([1.0]), Board(recalling(known)))
    simulate(study, lambda point: 0.7)
    found = study.board.worst_case("clip=arc")
    assert (found.kind, found.mean) == ("exact", 0.7)
