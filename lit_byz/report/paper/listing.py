"""The catalogue with what is done and what is left, in runs and in hours."""

import os
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lit_byz.config.grid import Point
from lit_byz.report.paper.experiment import Experiment
from lit_byz.report.paper.survey import SMOKE
from lit_byz.report.paper.tables import Table
from lit_byz.tracking.glances import last_values
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.tracked_costs import Cost, evaluations, load_of, tracked_costs

SPEED = "speed/steps_per_second"
EXAMPLES = "speed/examples_per_second"
# How the time of a run is known; evaluations come on top of its steps.
MEASURED, STEPS, COMPUTED = "measured", "steps measured", "computed"
PARTLY = "partly computed"

# Runs of a data set and a model that are looked at for their speed.
NEWEST = 200
# Examples per second of the runs that the store has of a data set and a model.
Speeds = Callable[[str, str], Sequence[float]]
# What such a run takes beside its steps; None: unknown.
Beside = Callable[[Point], Cost | None]


@dataclass(frozen=True)
class Tally:
    """Runs, those that are done, and the seconds of one core that are left."""

    runs: int
    done: int
    failed: int
    seconds: float
    times: str
    """Whether the seconds were measured, of steps alone, or computed from operations.

    "" where none are left.
    """


@dataclass(frozen=True)
class Listing:
    """The experiments with what is done and left of each, and of all, shared runs counted once."""

    entries: Sequence[tuple[Experiment, Tally]]
    all: Tally


def unknown(point: Point) -> Cost | None:
    """No run of that load was tracked."""
    return None


@dataclass
class Costs:
    """What a run takes on one core: as tracked runs of its kind did, else as the file says."""

    by_kind: Mapping[str, float]
    """Seconds of a step."""
    speeds: Speeds
    beside: Beside = unknown
    _by_model: dict[tuple[str, str], float | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        points: Iterable[Point],
        metrics: Mapping[str, Mapping[str, float]],
        speeds: Speeds,
        beside: Beside = unknown,
    ) -> "Costs":
        seconds: dict[str, list[float]] = {}
        for point in points:
            speed = metrics.get(point.identity, {}).get(SPEED)
            if speed:
                for kind in _kinds(point):
                    seconds.setdefault(kind, []).append(1 / speed)
        by_kind = {kind: statistics.median(found) for kind, found in seconds.items()}
        return cls(by_kind, speeds, beside)

    def of_run(self, point: Point, experiment: Experiment) -> tuple[float, str]:
        """Seconds, and how they are known."""
        step = self._seconds_of_a_step(point)
        if step is None:
            share = point.steps / experiment.steps if experiment.steps else 1.0
            return experiment.seconds * share, MEASURED if experiment.timed else COMPUTED
        beside = self.beside(point)
        if beside is None:
            return point.steps * step, STEPS
        count = evaluations(point.steps, int(point.plain["train"]["eval_every"]))
        return point.steps * step + count * beside.evaluation + beside.run, MEASURED

    def _seconds_of_a_step(self, point: Point) -> float | None:
        """As runs of its kind took, else as any of its model did."""
        for kind in _kinds(point):
            if kind in self.by_kind:
                return self.by_kind[kind]
        example = self._seconds_of_an_example(point)
        workers = point.plain["workers"]
        return None if example is None else workers["honest"] * workers["batch_size"] * example

    def _seconds_of_an_example(self, point: Point) -> float | None:
        """As runs of the model took that are in the store for whatever reason."""
        key = (str(point.plain["dataset"]["name"]), str(point.plain["model"]["name"]))
        if key not in self._by_model:
            found = [speed for speed in self.speeds(*key) if speed > 0]
            self._by_model[key] = 1 / statistics.median(found) if found else None
        return self._by_model[key]


def speeds_in(ledger: Ledger) -> Speeds:
    """As the newest runs of a store had them."""

    def of_model(dataset: str, model: str) -> list[float]:
        params = {"dataset.name": dataset, "model.name": model}
        return last_values(ledger.store, ledger.experiment_id, EXAMPLES, params, NEWEST)

    return of_model


def beside_in(ledger: Ledger, points: Iterable[Point]) -> Beside:
    """As the newest runs of a store had them that this machine has computed."""
    known = tracked_costs(ledger, [point.plain for point in points])
    if not known:
        return unknown

    return lambda point: known.get(load_of(point.plain))


def _kinds(point: Point) -> list[str]:
    """What decides the cost of a step, from the most to the least exact."""
    plain = point.plain
    model = f"{plain['dataset']['name']} {plain['model']['name']} {plain['workers']['honest']}"
    model = f"{model} {plain['workers']['batch_size']}"
    rule = f"{model} {plain['rule']['name']}"
    return [f"{rule} {point.attack}", rule, model]


def listed(
    experiments: Sequence[Experiment],
    outcomes: Mapping[str, Outcome],
    metrics: Mapping[str, Mapping[str, float]],
    speeds: Speeds,
    beside: Beside = unknown,
) -> Listing:
    """What is done and left of each experiment, and of all."""
    # A run that several need is that of the first.
    every = {p.identity: (p, e) for e in reversed(experiments) for p in e.points}
    costs = Costs.of([point for point, _ in every.values()], metrics, speeds, beside)
    cost = {
        identity: costs.of_run(point, experiment)
        for identity, (point, experiment) in every.items()
        if (outcome := outcomes.get(identity)) is None or not outcome.complete
    }

    def tally(identities: Sequence[str]) -> Tally:
        left = [cost[identity] for identity in identities if identity in cost]
        known = [outcomes.get(identity) for identity in identities]
        return Tally(
            len(identities),
            len(identities) - len(left),
            sum(outcome is not None and outcome.status == "failed" for outcome in known),
            sum(seconds for seconds, _ in left),
            _times({times for _, times in left}),
        )

    each = [(e, tally([point.identity for point in e.points])) for e in experiments]
    return Listing(each, tally(list(every)))


def _times(of_runs: Collection[str]) -> str:
    if len(of_runs) < 2:
        return "".join(of_runs)
    return PARTLY if COMPUTED in of_runs else STEPS


def table(made: Listing) -> Table:
    """For people: a row for each experiment, and one for all, shared runs counted once."""
    cores = len(os.sched_getaffinity(0))
    names = [[e.name, e.place, _short(e.shows)] for e, _ in made.entries]
    tallies = [tally for _, tally in made.entries]
    rows = [
        [
            *name,
            str(tally.runs) if tally.runs else "none needed",
            f"{tally.done}{f' ({tally.failed} failed)' if tally.failed else ''}",
            str(tally.runs - tally.done),
            _hours(tally.seconds / cores),
            _hours(tally.seconds / 100),
            tally.times,
        ]
        for name, tally in zip(
            [*names, ["all", "", "each run once"]], [*tallies, made.all], strict=True
        )
    ]
    header = ["experiment", "paper", "shows", "runs", "done", "missing"]
    header += [f"hours left on {cores} cores", "on 100 cores", "time of a run"]
    title = "The paper's figures and tables"
    if any(experiment.smoke for experiment, _ in made.entries):
        title += f": {SMOKE}"
    return Table(title, header, rows, names=3)


def _short(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.1f}"
