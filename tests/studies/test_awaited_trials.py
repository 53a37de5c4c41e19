"""Tuning: trials of other processes are waited for when nothing else is left to do."""

from collections.abc import Mapping
from typing import Any

from lit_byz.config.ranges import Range
from lit_byz.config.search_space import Problem
from lit_byz.studies.tuning import TuningStudy
from lit_byz.tracking.trials import Trial
from tests.studies._simulate import BASE, simulate


class SharedTrials:
    """Two trials, the first of which another process has: it ends it, or leaves it."""

    def __init__(self, left_after: int, ends: bool) -> None:
        self.left_after, self.ends = left_after, ends
        self.looks = 0
        self.taken: list[int] = []
        self.ended: dict[int, tuple[str, float | None]] = {}

    @property
    def _theirs(self) -> bool:
        return self.looks < self.left_after

    @property
    def incumbent(self) -> float | None:
        return max((value or 0.0 for _, value in self.ended.values()), default=None)

    def trials(self) -> list[Trial]:
        known = {0: ("running", None), **self.ended}
        if self.ends and not self._theirs:
            known[0] = ("complete", 0.9)
        return [Trial(n, {"clip.C": n + 1.0}, state, value) for n, (state, value) in known.items()]

    def take(self) -> Trial | None:
        free = [1] if self._theirs or self.ends else [0, 1]
        for number in free:
            if number not in self.taken:
                self.taken.append(number)
                return Trial(number, {"clip.C": number + 1.0}, "running")
        return None

    def wait(self) -> bool:
        """Whether somebody else was at a trial."""
        theirs = self._theirs
        self.looks += 1
        return theirs

    def note(self, number: int, runs: Mapping[str, Any]) -> None:
        return

    def complete(self, number: int, value: float, pruned_runs: int) -> None:
        self.ended[number] = ("complete", value)

    def prune(self, number: int, upper_bound: float, pruned_runs: int) -> None:
        self.ended[number] = ("pruned", upper_bound)

    def fail(self, number: int, pruned_runs: int) -> None:
        raise AssertionError

    def release(self, number: int) -> None:
        return


def study_of(source: SharedTrials) -> TuningStudy:
    space: Any = {"clip.C": Range(0.01, 100.0, log=True)}
    runs = {"attack": ["sf"], "seed": [1]}
    problem = Problem({**BASE, "clip": "static"}, runs, space, 2, {"clip=arc": {"clip": "arc"}})
    return TuningStudy(problem, source, wait=source.wait)


def test_one_that_is_left_behind_is_taken_up() -> None:
    source = SharedTrials(left_after=3, ends=False)
    study = study_of(source)
    asked = simulate(study, lambda point: 0.5)
    assert source.taken == [1, 0]
    assert source.ended.keys() == {0, 1}
    assert source.looks > 3
    assert len(asked) == 3, "both trials, and what they are compared with"


def test_one_that_ends_elsewhere_is_in_the_study() -> None:
    source = SharedTrials(left_after=2, ends=True)
    study = study_of(source)
    simulate(study, lambda point: 0.5)
    states = {c.facts.get("trial"): c.facts.get("state") for c in study.board.cells.values()}
    assert (states[0], states[1]) == ("complete", "complete")


def test_nobody_waits_while_there_is_something_to_do() -> None:
    source = SharedTrials(left_after=2, ends=True)
    study = study_of(source)
    for _ in range(2):  # our own trial, and what it is compared with
        assert study.propose() is not None
    assert study.propose() is None
    assert source.looks == 0
