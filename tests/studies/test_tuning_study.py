"""Tuning: pruning loses nothing, and every trial is told of once."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from lit_byz.config.grid import Point
from lit_byz.config.ranges import Range
from lit_byz.config.search_space import Problem
from lit_byz.studies.tuning import TuningStudy
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.trials import Trial
from tests.studies._simulate import BASE, outcome_of, simulate

THRESHOLDS = [0.1, 1.0, 5.0, 30.0, 2.0]


@dataclass
class ListedTrials:
    """Trials whose parameters are known in advance."""

    params: list[float]
    told: dict[int, Trial] = field(default_factory=dict)

    @property
    def incumbent(self) -> float | None:
        done = [t.value for t in self.told.values() if t.state == "complete"]
        return max((value for value in done if value is not None), default=None)

    def trials(self) -> list[Trial]:
        return list(self.told.values())

    def take(self) -> Trial | None:
        number = len(self.told)
        if number == len(self.params):
            return None
        self.told[number] = Trial(number, {"clip.C": self.params[number]}, "running")
        return self.told[number]

    def note(self, number: int, runs: Mapping[str, Any]) -> None:
        self.told[number] = replace(self.told[number], runs=dict(runs))

    def _end(self, number: int, state: str, value: float | None, pruned: int) -> None:
        assert self.told[number].state == "running"
        ended = replace(self.told[number], state=state, value=value, pruned_runs=pruned)
        self.told[number] = ended

    def complete(self, number: int, value: float, pruned_runs: int) -> None:
        self._end(number, "complete", value, pruned_runs)

    def prune(self, number: int, upper_bound: float, pruned_runs: int) -> None:
        self._end(number, "pruned", upper_bound, pruned_runs)

    def fail(self, number: int, pruned_runs: int) -> None:
        self._end(number, "failed", None, pruned_runs)

    def release(self, number: int) -> None:
        return


def problem() -> Problem:
    base = {**BASE, "clip": "static"}
    runs = {"attack": ["sf", "lf", "foe"], "seed": [1, 2]}
    space: Any = {"clip.C": Range(0.01, 100.0, log=True)}
    return Problem(base, runs, space, len(THRESHOLDS), {"clip=arc": {"clip": "arc"}})


def test_pruning_loses_nothing_whatever_the_accuracies_are() -> None:
    asked_for = problem()
    for seed in range(10):
        for width in (1, 3):
            chance = random.Random(seed)
            table: dict[str, float] = {}

            def accuracy(
                point: Point, table: dict[str, float] = table, chance: random.Random = chance
            ) -> float:
                return table.setdefault(point.identity, chance.random())

            source = ListedTrials(THRESHOLDS)
            study = TuningStudy(asked_for, source)
            asked = simulate(study, accuracy, width)
            truth = []
            for number, threshold in enumerate(THRESHOLDS):
                points = asked_for.trial(number, {"clip.C": threshold})
                per_seed = [min(accuracy(p) for p in points if p.seed == s) for s in (1, 2)]
                truth.append(sum(per_seed) / 2)
            assert source.incumbent == max(truth)
            for trial, value in zip(source.trials(), truth, strict=True):
                assert trial.value is not None
                if trial.state == "pruned":
                    assert value <= trial.value < max(truth)
                else:
                    assert trial.value == value
                assert len(trial.runs) + trial.pruned_runs == 6
            assert len(asked) == len({point.identity for point in asked})
            assert study.board.missing == []
            assert study.board.worst_case("clip=arc").exact


@pytest.mark.parametrize("width", [1, 3])
def test_no_more_comes_than_was_said(width: int) -> None:
    study = TuningStudy(problem(), ListedTrials(THRESHOLDS))
    runs = 6 * len(THRESHOLDS) + 6
    assert study.most_to_come() == (runs, 40 * runs)
    said: list[int] = []

    def accuracy(point: Point) -> float:
        said.append(len(study.board.points) + study.most_to_come()[0])
        return 0.5 if point.attack == "sf" else 0.7

    simulate(study, accuracy, width)
    assert set(said) == {runs} == {len(study.board.points)}
    assert study.most_to_come() == (0, 0)


def test_a_trial_may_be_longer_than_another() -> None:
    space: Any = {"train.steps": Range(10, 30, integer=True)}
    asked = replace(problem(), base=BASE, space=space, trials=2)
    study = TuningStudy(asked, ListedTrials([]))
    assert study.most_to_come() == (2 * 6 + 6, 2 * 6 * 30 + 6 * 40)


def test_cells_say_how_their_trial_stands() -> None:
    study = TuningStudy(problem(), ListedTrials([50.0, 0.1]))
    simulate(study, lambda point: 0.8 if point.plain["clip"].get("C", 1) > 1 else 0.2)
    first, second, arc = (study.board.cells[name].facts for name in study.board.cells)
    assert (first["state"], first["value"], first["decided"]) == ("complete", 0.8, True)
    # Of the second trial one run was enough: the mean over both seeds is at most (0.2 + 1) / 2.
    assert (second["state"], second["cost"]["pruned"]) == ("pruned", 5)
    assert second["value"] == pytest.approx(0.6)
    assert arc["comparison"] == "clip=arc"
    assert study.facts()["runs_per_trial"] == 6


def test_a_failed_run_fails_its_trial() -> None:
    source = ListedTrials([1.0])
    study = TuningStudy(problem(), source)
    while (proposal := study.propose()) is not None:
        if "trial" in proposal.point.cell:
            study.hear(Outcome(proposal.point.identity, "failed", error="it broke"))
        else:
            study.hear(outcome_of(proposal, lambda point: 0.5))
    assert source.told[0].state == "failed"
    assert source.incumbent is None
    assert study.board.cells["trial 0, clip.C=1"].facts["decided"] is False


def test_trials_of_other_processes_are_taken_in() -> None:
    """What another process has found counts as the best one here, and stands in the record."""
    source = ListedTrials([1.0, 2.0])
    other = TuningStudy(problem(), source)
    source.params = [1.0]
    simulate(other, lambda point: 0.9)
    source.params = [1.0, 2.0]
    study = TuningStudy(problem(), source)
    simulate(study, lambda point: 0.3)
    assert [trial.state for trial in source.trials()] == ["complete", "pruned"]
    assert study.board.cells["trial 0, clip.C=1"].facts["value"] == 0.9
