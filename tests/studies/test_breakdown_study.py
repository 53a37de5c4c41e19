"""Breakdown points: the bisection finds what a scan of the full grid finds, with fewer runs."""

import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lit_byz.config.grid import Grid, Point
from lit_byz.config.grid_source import read_grid
from lit_byz.errors import BadRequest
from lit_byz.studies.breakdown import Bisection, BreakdownStudy, make_arms, make_breakdown
from lit_byz.studies.misspecified import misspecified_points
from lit_byz.tracking.outcome import Outcome
from tests.studies._simulate import BASE, by_table, simulate


@given(st.integers(1, 60), st.data())
def test_bisection_is_a_scan_with_few_probes(most: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, most + 1))  # most + 1: never breaks
    search, probes = Bisection(most), 0
    while (f := search.next) is not None:
        assert 1 <= f <= most
        assert search.answer is None
        search.note(f, broken=f >= first)
        probes += 1
    assert search.answer == (first if first <= most else None)
    assert probes <= math.ceil(math.log2(most + 1))


def study_of(axes: dict[str, Any], threshold: float, **more: Any) -> BreakdownStudy:
    arms = make_arms(Grid(BASE, axes=axes), more.pop("max_f", None))
    return make_breakdown(arms, threshold, more.get("decide_only", False))


@pytest.mark.parametrize("decide_only", [False, True])
@pytest.mark.parametrize("seeds", [[1], [1, 2, 3]])
def test_arms_advance_by_themselves(seeds: list[int], decide_only: bool) -> None:
    breaks = {"none": 2, "arc": 5}
    hurt = {"sf": 0.3, "lf": 0.0, "mimic": 0.1}

    def accuracy(point: Point) -> float:
        margin = breaks[point.plain["clip"]["name"]] - int(point.plain["workers"]["f"]) - 0.5
        return float(0.6 + 0.1 * margin - hurt[point.attack] + 0.01 * point.seed)

    # The worst attack's accuracy crosses 0.3 + 0.01 · mean(seed) between breaks − 1 and breaks.
    threshold = 0.3 + 0.01 * statistics.fmean(seeds)
    axes = {"clip": ["none", "arc"], "attack": ["mimic", "lf", "sf"], "seed": seeds}
    study = study_of(axes, threshold, decide_only=decide_only)
    asked = simulate(study, accuracy, width=3)
    facts = study.facts()
    assert facts["arms"] == {
        f"clip={name}": {"breakdown": first, "decided": True} for name, first in breaks.items()
    }
    assert facts["runs_used"] == len(asked) < study.most_runs() <= facts["runs_full_grid"]
    assert study.board.missing == []
    for name, cell in study.board.cells.items():
        first = breaks[cell.facts["arm"].removeprefix("clip=")]
        found, f = study.board.worst_case(name), cell.facts["f"]
        assert cell.facts["decided"]
        if f >= first:
            assert found.at_most < threshold
        else:
            assert found.at_least >= threshold
            assert found.exact or decide_only


@given(st.integers(1, 6), st.integers(1, 5), st.sampled_from([1, 3]))
def test_no_more_comes_than_was_said(first: int, most: int, width: int) -> None:
    """And where nothing is dropped and the longest way is taken, no less either."""
    study = study_of({"attack": ["sf", "lf"]}, 0.5, max_f=most)
    assert study.most_to_come() == (study.most_runs(), 40 * study.most_runs())
    said: list[int] = []

    def accuracy(point: Point) -> float:
        said.append(len(study.board.points) + study.most_to_come()[0])
        return 0.9 if int(point.plain["workers"]["f"]) < first else 0.1

    simulate(study, accuracy, width)
    assert said == sorted(said, reverse=True)
    assert said[0] == study.most_runs()
    assert said[-1] >= len(study.board.points)
    assert study.most_to_come() == (0, 0)


def test_what_is_known_does_not_come() -> None:
    study = study_of({"attack": ["sf", "lf"]}, 0.5, max_f=3)
    known = {point.identity for f in (2, 3) for point in study.arms[""].by_f[f]}
    assert [point.plain["workers"]["f"] for point in study.later(known)] == [1, 1]
    study.begin()
    assert len(study.board.waiting) == len(study.later()) == 2
    for outcome in [Outcome(point.identity, "failed") for point in study.board.points]:
        study.hear(outcome)
    assert study.later() == [], "a probe that failed decides nothing"


def test_the_attack_that_hurts_most_comes_first() -> None:
    study = study_of({"attack": ["mimic", "lf", "sf"]}, 0.5)
    asked = simulate(study, by_table({"sf": 0.4, "lf": 0.9, "mimic": 0.8}))
    assert [point.attack for point in asked] == ["mimic", "lf", "sf", "sf"]
    assert study.facts()["arms"][""]["breakdown"] == 1
    kinds = {c.facts["f"]: study.board.worst_case(n).kind for n, c in study.board.cells.items()}
    assert kinds == {3: "exact", 1: "at most"}
    assert len(study.board.dropped) == 2


def test_an_arm_that_never_breaks() -> None:
    study = study_of({"attack": ["sf"]}, 0.5, max_f=3)
    simulate(study, by_table({"sf": 0.9}))
    assert study.facts()["arms"][""] == {"breakdown": None, "decided": True}
    assert [cell.facts["f"] for cell in study.board.cells.values()] == [2, 3]


def test_a_failed_run_leaves_its_arm_undecided_unless_the_others_decide() -> None:
    """A minimum over the attacks that happened to work would flatter the defence."""

    def answer(broken: float) -> dict[str, Any]:
        study = study_of({"attack": ["sf", "lf"]}, 0.5, max_f=1)
        while (proposal := study.propose()) is not None:
            identity = proposal.point.identity
            if proposal.point.attack == "lf":
                study.hear(Outcome(identity, "failed"))
            else:
                study.hear(Outcome(identity, "finished", broken))
        found: dict[str, Any] = study.facts()["arms"][""]
        return found

    assert answer(0.9) == {"breakdown": None, "decided": False}
    assert answer(0.3) == {"breakdown": 1, "decided": True}


def test_what_is_known_decides_without_a_run() -> None:
    study = study_of({"attack": ["sf", "lf"]}, 0.5)
    known = {
        p.identity: Outcome(
            p.identity, "finished", 0.9 - 0.2 * p.plain["workers"]["f"], reused=True
        )
        for p in study.grid_points
    }
    study.board.recall = lambda points: {p.identity: known[p.identity] for p in points}
    assert simulate(study, by_table({})) == []
    assert study.facts()["arms"][""]["breakdown"] == 3


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"workers.f": [1, 2]}, r"workers\.f: must not be an axis"),
        ({"workers.honest": [5, 6]}, r"workers\.honest: must not be an axis"),
    ],
)
def test_axes_that_are_searched_are_refused(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        make_arms(Grid(BASE, axes=axes))


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"workers.f": [1]}, r"server\.f=\[1,2,3\] is missing"),
        ({"workers.f": [1], "server.f": [-1]}, r"server\.f = -1: must be a whole number"),
        ({"workers.f": [1], "server.f": [5]}, "no pair has"),
    ],
)
def test_bad_lists_of_declared_and_real(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        misspecified_points(Grid(BASE, axes=axes))


def test_experiment_files() -> None:
    """With one attack and one seed: what counts is how many arms and pairs there are."""
    one = ["attack=foe", "seed=1"]
    for name, attacks_and_seeds, arms in (("breakdown_digits", 5, 2), ("breakdown_mnist", 25, 4)):
        settings = [f"experiment={name}"]
        assert len(list(read_grid(settings, "").values())) == arms * attacks_and_seeds
        study = make_breakdown(make_arms(read_grid([*settings, *one], ""), 5), 0.5, False)
        found = (len(study.arms), len(study.grid_points), study.most_runs())
        assert found == (arms, arms * 5, arms * 3)
    for name, declared in (("breakdown_declared_digits", 4), ("breakdown_declared_mnist", 5)):
        pairs, left_out = misspecified_points(read_grid([f"experiment={name}", *one], ""))
        assert (len(pairs), left_out) == (2 * declared * 4, [])
