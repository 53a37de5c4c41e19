"""The catalogue with what is done and what is left, in runs and in hours."""

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lit_byz.config.grid import Point
from lit_byz.report.paper.experiment import Experiment
from lit_byz.report.paper.tables import Table
from lit_byz.tracking.outcome import Outcome

SPEED = "speed/steps_per_second"


@dataclass(frozen=True)
class Entry:
    """An experiment, its runs, those that are done, and the seconds of one core that are left."""

    experiment: Experiment
    runs: int
    done: int
    failed: int
    seconds: float


@dataclass(frozen=True)
class Costs:
    """What a run takes on one core: as tracked runs of its kind did, else as the file says."""

    by_kind: Mapping[str, float]

    @classmethod
    def of(cls, points: Sequence[Point], metrics: Mapping[str, Mapping[str, float]]) -> "Costs":
        seconds: dict[str, list[float]] = {}
        for point in points:
            speed = metrics.get(point.identity, {}).get(SPEED)
            if speed:
                for kind in _kinds(point):
                    seconds.setdefault(kind, []).append(point.steps / speed)
        return cls({kind: statistics.median(found) for kind, found in seconds.items()})

    def seconds(self, point: Point, otherwise: float) -> float:
        for kind in _kinds(point):
            if kind in self.by_kind:
                return self.by_kind[kind]
        return otherwise


def _kinds(point: Point) -> list[str]:
    """What decides the cost of a run, from the most to the least exact."""
    plain = point.plain
    model = f"{plain['dataset']['name']} {plain['model']['name']} {plain['workers']['honest']}"
    model = f"{model} {plain['workers']['batch_size']} {point.steps}"
    rule = f"{model} {plain['rule']['name']}"
    return [f"{rule} {point.attack}", rule, model]


def entries(
    experiments: Sequence[Experiment],
    outcomes: Mapping[str, Outcome],
    metrics: Mapping[str, Mapping[str, float]],
) -> list[Entry]:
    """What is done and left of each experiment."""
    every = [point for experiment in experiments for point in experiment.points]
    costs = Costs.of(list({point.identity: point for point in every}.values()), metrics)
    made = []
    for experiment in experiments:
        known = [outcomes.get(point.identity) for point in experiment.points]
        left = [
            point
            for point, outcome in zip(experiment.points, known, strict=True)
            if outcome is None or not outcome.complete
        ]
        made.append(
            Entry(
                experiment,
                len(known),
                len(known) - len(left),
                sum(outcome is not None and outcome.status == "failed" for outcome in known),
                sum(costs.seconds(point, experiment.seconds) for point in left),
            )
        )
    return made


def table(made: Sequence[Entry], shared: int, shared_done: int) -> Table:
    """For people: a row for each experiment, and one for all, shared runs counted once."""
    cores = len(os.sched_getaffinity(0))
    rows = [
        [
            entry.experiment.name,
            entry.experiment.place,
            _short(entry.experiment.shows),
            str(entry.runs) if entry.runs else "none needed",
            f"{entry.done}{f' ({entry.failed} failed)' if entry.failed else ''}",
            str(entry.runs - entry.done),
            _hours(entry.seconds / cores),
            _hours(entry.seconds / 100),
        ]
        for entry in made
    ]
    rows.append(["all", "", "each run once", str(shared), str(shared_done)])
    rows[-1] += [str(shared - shared_done), "", ""]
    header = ["experiment", "paper", "shows", "runs", "done", "missing"]
    header += [f"hours left on {cores} cores", "on 100 cores"]
    return Table("The paper's figures and tables", header, rows, names=3)


def _short(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.1f}"
