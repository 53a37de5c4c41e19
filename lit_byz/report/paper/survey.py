"""What the store has of an experiment: its cells, by panel and by method."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lit_byz.config.grid import Point
from lit_byz.report.paper.experiment import Experiment
from lit_byz.report.paper.words import attack_word, is_baseline, word
from lit_byz.report.strengths import strength_of, strengths_of
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import CellRecord, CellResult, PlannedRun
from lit_byz.tracking.worst_case import Accuracy, WorstCase, worst_case

# The (step, value) pairs of a run's metric.
History = Callable[[str, str], Sequence[tuple[int, float]]]
# The paper's own strength and ours: every number is shown at both.
SHOWN = ("coarse", "grid")
# Kinds of experiments that show each attack by itself.
WITHOUT_WORST_CASES = ("accuracy", "thresholds")
BASELINE = "DSGD, f = 0"
SMOKE = "smoke test, the numbers mean nothing"


@dataclass(frozen=True)
class Cell:
    """The runs of one method in one setting: all attacks and seeds."""

    example: Point
    result: CellResult

    @property
    def baseline(self) -> bool:
        return is_baseline(self.example.plain)

    @property
    def honest(self) -> int:
        return int(self.example.plain["workers"]["honest"])

    def word(self, key: str) -> str:
        return word(key, self.example.plain)

    def at(self, strength: str | None) -> WorstCase:
        """Its worst case against attackers of a strength.

        Over the complete seeds alone, where there are any; else a bound over those that were begun.
        """
        known = self._known(strength)
        chosen = [seed for seed, runs in known.items() if complete(runs)] or list(known)
        return worst_case({seed: known[seed] for seed in chosen})

    def begun_at(self, strength: str | None) -> WorstCase:
        """The same over all seeds that were begun, complete or not."""
        return worst_case(self._known(strength))

    def incomplete_at(self, strength: str | None) -> set[int]:
        """Seeds that were begun, and of which an attack is missing, failed or was stopped."""
        return {seed for seed, runs in self._known(strength).items() if not complete(runs)}

    def _known(self, strength: str | None) -> dict[int, dict[str, Accuracy | None]]:
        """The runs of the seeds that were begun; attacks that do not search are of any strength."""
        labels = [a for a in self.result.attacks if strength_of(a) in (None, strength)]
        if strength is None or all(strength_of(label) is None for label in labels):
            labels = self.result.attacks
        chosen = {
            seed: {attack: runs[attack] for attack in labels if attack in runs}
            for seed, runs in self.result.known.items()
        }
        return {
            seed: runs
            for seed, runs in chosen.items()
            if any(accuracy is not None for accuracy in runs.values())
        }

    def runs(self, attack: str) -> list[PlannedRun]:
        """The runs under one attack, a seed each."""
        return [run for run in self.result.record.runs if run.attack == attack]

    def metric(self, run: PlannedRun, key: str) -> float | None:
        return self.result.metrics.get(run.identity, {}).get(key)


def complete(runs: Mapping[str, Accuracy | None]) -> bool:
    """Whether all attacks on a seed have a result, and its worst case is one number."""
    found = worst_case({0: runs})
    return found.exact and not found.missing


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

    def left_out(self, strengths: Sequence[str | None] | None = None) -> str:
        """How many worst cases have seeds that do not count yet, in words; "" where none has."""
        if self.experiment.kind in WITHOUT_WORST_CASES:
            return ""
        cells = [(cell, s) for cell in self.methods for s in strengths or self.strengths]
        cells += [(cell, None) for cell in self.baselines]
        counts = [cell.begun_at(s).seeds - cell.at(s).seeds for cell, s in cells]
        worst_cases = sum(count > 0 for count in counts)
        if not worst_cases:
            return ""
        seeds = f"{sum(counts)} seed{'s' if sum(counts) > 1 else ''}"
        cells_of = f"{worst_cases} cell{'s' if worst_cases > 1 else ''}"
        return f"begun and left out until complete: {seeds} of {cells_of}"

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
        """DSGD on the same data from the same start, of as many honest workers where there is."""
        keys = ("partition", "model.init_scale")
        alike = [b for b in self.baselines if all(b.word(key) == cell.word(key) for key in keys)]
        return next((b for b in alike if b.honest == cell.honest), alike[0] if alike else None)

    def baseline_name(self, cell: Cell) -> str:
        """What a cell's baseline is called: with its honest workers where these are others."""
        other = self.baseline_of(cell)
        if other is None or other.honest == cell.honest:
            return BASELINE
        return f"{BASELINE}, {other.honest} honest workers"

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
            parts.insert(0, SMOKE)
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


def complete_runs(cell: Cell, attack: str) -> list[PlannedRun]:
    """The runs under an attack that have their result, a seed each."""
    return [run for run in cell.runs(attack) if (o := cell.result.outcome(run)) and o.complete]


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Over seeds; no spread where there is one."""
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def attack_panels(found: Survey) -> list[tuple[str, str, str | None]]:
    """The attacks of an experiment: their names in words, labels and strengths."""
    labels = dict.fromkeys(a for cell in found.methods for a in cell.result.attacks)
    return [(attack_word(label), label, strength_of(label)) for label in labels]
