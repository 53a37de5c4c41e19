"""What the store has of an experiment: its cells, by panel and by method."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lit_byz.config.grid import Point
from lit_byz.report.paper.experiment import Experiment
from lit_byz.report.paper.words import attack_word, is_baseline, word
from lit_byz.report.strengths import at_strength, strength_of, strengths_of
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import CellRecord, CellResult, PlannedRun
from lit_byz.tracking.worst_case import WorstCase, worst_case

# The (step, value) pairs of a run's metric.
History = Callable[[str, str], Sequence[tuple[int, float]]]
# The paper's own strength and ours: every number is shown at both.
SHOWN = ("coarse", "grid")


@dataclass(frozen=True)
class Cell:
    """The runs of one method in one setting: all attacks and seeds."""

    example: Point
    result: CellResult

    @property
    def baseline(self) -> bool:
        return is_baseline(self.example.plain)

    def word(self, key: str) -> str:
        return word(key, self.example.plain)

    def at(self, strength: str | None) -> WorstCase:
        """Its worst case against attackers of a strength, over the seeds that were begun.

        Attacks that do not search count at every strength.
        """
        found = None if strength is None else at_strength(self.result, strength)
        return begun(self.result.worst_case if found is None else found, self._begun(strength))

    def _begun(self, strength: str | None) -> set[int]:
        return {
            seed
            for seed, runs in self.result.known.items()
            if any(
                accuracy is not None
                for attack, accuracy in runs.items()
                if strength is None or strength_of(attack) in (None, strength)
            )
        }

    def runs(self, attack: str) -> list[PlannedRun]:
        """The runs under one attack, a seed each."""
        return [run for run in self.result.record.runs if run.attack == attack]

    def metric(self, run: PlannedRun, key: str) -> float | None:
        return self.result.metrics.get(run.identity, {}).get(key)


def begun(found: WorstCase, seeds: set[int]) -> WorstCase:
    """A worst case over some seeds alone."""
    bounds = {seed: limits for seed, limits in found.bounds.items() if seed in seeds}
    # What is missing of seeds that were never begun is not missing from these.
    missing = found.missing if any(low != high for low, high in bounds.values()) else 0
    return WorstCase(bounds, missing, found.known)


@dataclass(frozen=True)
class Survey:
    """An experiment and its cells, as far as they were computed."""

    experiment: Experiment
    cells: Sequence[Cell]
    history: History

    @cached_property
    def baselines(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.baseline]

    @cached_property
    def methods(self) -> list[Cell]:
        return [cell for cell in self.cells if not cell.baseline]

    @property
    def planned(self) -> int:
        return len({run.identity for cell in self.cells for run in cell.result.record.runs})

    @property
    def done(self) -> int:
        return len({o.identity for o in self._outcomes() if o.complete})

    @property
    def begun(self) -> bool:
        """Whether there is a run of a method, and not of the baseline alone."""
        every = ((cell, run) for cell in self.methods for run in cell.result.record.runs)
        return any((o := cell.result.outcome(run)) and o.complete for cell, run in every)

    @property
    def failed(self) -> int:
        return len({o.identity for o in self._outcomes() if o.status == "failed"})

    def _outcomes(self) -> Iterable[Outcome]:
        for cell in self.cells:
            for run in cell.result.record.runs:
                outcome = cell.result.outcome(run)
                if outcome is not None:
                    yield outcome

    @cached_property
    def seeds(self) -> tuple[int, int]:
        """How many seeds were begun, and how many there should be."""
        planned = {run.seed for cell in self.cells for run in cell.result.record.runs}
        known = {
            seed
            for cell in self.cells
            for seed, runs in cell.result.known.items()
            if any(accuracy is not None for accuracy in runs.values())
        }
        return len(known), len(planned)

    @cached_property
    def strengths(self) -> list[str | None]:
        """The strengths that it has attacks of; [None] where no attack searches."""
        found = strengths_of([cell.result for cell in self.methods])
        return [s for s in SHOWN if s in found] or [None]

    def panels(self) -> dict[str, list[Cell]]:
        """The cells of each panel, without baselines; one named "" where there are no panels."""
        return grouped(self.methods, [key for key in self.experiment.panels if key != "attack"])

    def method(self, cell: Cell) -> str:
        """What a cell's line is called: all that is neither panel nor x."""
        return ", ".join(self._names(cell))

    def _names(self, cell: Cell) -> list[str]:
        taken = {*self.experiment.panels, self.experiment.x, self.experiment.y}
        varying = [key for key in ("rule", "clip", "workers.f", "partition") if key not in taken]
        names = [key for key in varying if len({c.word(key) for c in self.methods}) > 1]
        return [cell.word(key) for key in names] or [cell.word("clip")]

    def baseline_of(self, cell: Cell) -> Cell | None:
        """DSGD on the same data from the same start."""
        for other in self.baselines:
            if all(other.word(key) == cell.word(key) for key in ("partition", "model.init_scale")):
                return other
        return None

    @property
    def partial(self) -> str:
        """What is missing, in words; "" where nothing is."""
        begun_seeds, planned_seeds = self.seeds
        parts = []
        if self.done < self.planned:
            parts.append(f"partial: {self.done} of {self.planned} runs")
            parts.append(f"{begun_seeds} of {planned_seeds} seeds")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.experiment.smoke:
            parts.insert(0, "smoke test, the numbers mean nothing")
        return ", ".join(parts)


def grouped(cells: Sequence[Cell], keys: Sequence[str]) -> dict[str, list[Cell]]:
    """Cells by the values that they have of some keys, in words."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        title = ", ".join(cell.word(key) for key in keys)
        found.setdefault(title, []).append(cell)
    return found


def survey(
    experiment: Experiment,
    outcomes: Mapping[str, Outcome],
    metrics: Mapping[str, Mapping[str, float]],
    history: History,
) -> Survey:
    """The cells of an experiment with what is known of their runs."""
    by_cell: dict[str, list[Point]] = {}
    for point in experiment.points:
        by_cell.setdefault(point.cell, []).append(point)
    cells = []
    for name, members in by_cell.items():
        runs = [PlannedRun(p.attack, p.seed, p.identity, p.steps) for p in members]
        record = CellRecord(name, runs)
        cells.append(Cell(members[0], CellResult(record, outcomes, metrics=metrics)))
    return Survey(experiment, cells, history)


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Over seeds; no spread where there is one."""
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def attack_panels(found: Survey) -> list[tuple[str, str, str | None]]:
    """The attacks of an experiment: their names in words, labels and strengths."""
    labels = dict.fromkeys(a for cell in found.methods for a in cell.result.attacks)
    return [(attack_word(label), label, strength_of(label)) for label in labels]


__all__ = ["Cell", "Survey", "attack_panels", "grouped", "mean_and_std", "survey", "worst_case"]
