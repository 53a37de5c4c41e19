"""What the store keeps of a study beside its runs, and what it gives back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from lit_byz._passwords import without_passwords
from lit_byz.tracking.outcome import MEASURES, Outcome
from lit_byz.tracking.worst_case import Accuracy, WorstCase, worst_case

# Tags that carry a record, cut to the length that MLflow allows.
RECORD = "lit_byz.record"
LENGTH = 7500


@dataclass(frozen=True)
class PlannedRun:
    """A run that a cell's worst case is taken over."""

    attack: str
    seed: int
    identity: str
    steps: int

    @property
    def label(self) -> str:
        return f"{self.attack} | seed {self.seed}"


@dataclass(frozen=True)
class CellRecord:
    """A cell as it was planned; ``facts`` say where it stands in its study."""

    name: str
    runs: Sequence[PlannedRun]
    kind: str = "cell"
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StudyRecord:
    """A sweep or a study: what all of its cells have in common.

    ``key`` is the same for the same study, so that the same command finds it again; ``shared`` are
    the settings that all runs agree on.
    """

    kind: str
    key: str
    name: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    shared: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CellResult:
    """A cell and what the store knows of its runs."""

    record: CellRecord
    outcomes: Mapping[str, Outcome]
    run_id: str | None = None
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The last value of every metric, by identity, as far as they were read."""

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.record.facts

    @cached_property
    def attacks(self) -> list[str]:
        return list(dict.fromkeys(run.attack for run in self.record.runs))

    def outcome(self, run: PlannedRun) -> Outcome | None:
        """How a run ended, with the accuracy that its cell is judged on."""
        found = self.outcomes.get(run.identity)
        return None if found is None else found.judged_on(self.judged_on)

    @property
    def judged_on(self) -> str:
        """The images whose accuracy counts: ``test``, or ``val`` for those held out."""
        return str(self.facts.get("judged_on", "test"))

    @property
    def tested(self) -> WorstCase:
        """The worst case on the test images at the steps that the images held out chose."""
        found: dict[int, dict[str, Accuracy | None]] = {}
        for run in self.record.runs:
            outcome = self.outcomes.get(run.identity)
            reached = None
            if outcome is not None and outcome.complete and outcome.test_at_val_max is not None:
                reached = Accuracy(outcome.test_at_val_max)
            found.setdefault(run.seed, {})[run.attack] = reached
        return worst_case(found)

    @cached_property
    def known(self) -> dict[int, dict[str, Accuracy | None]]:
        """What is known of each run's maximal accuracy, by seed and attack."""
        return self._known("max_accuracy")

    def _known(self, measure: str) -> dict[int, dict[str, Accuracy | None]]:
        found: dict[int, dict[str, Accuracy | None]] = {}
        for run in self.record.runs:
            outcome = self.outcome(run)
            accuracy = None if outcome is None else outcome.measured(measure)
            found.setdefault(run.seed, {})[run.attack] = accuracy
        return found

    @cached_property
    def worst_case(self) -> WorstCase:
        return worst_case(self.known)

    @cached_property
    def worst_cases(self) -> dict[str, WorstCase]:
        """The worst case of every measure: the same rules for each."""
        return {measure: worst_case(self._known(measure)) for measure in MEASURES}

    def of_attack(self, attack: str) -> dict[int, Accuracy]:
        """The accuracies under one attack, by seed."""
        return {
            seed: accuracy
            for seed, runs in self.known.items()
            if (accuracy := runs.get(attack)) is not None
        }

    @cached_property
    def failed(self) -> list[PlannedRun]:
        return [run for run in self.record.runs if self._status(run) == "failed"]

    @cached_property
    def missing(self) -> list[PlannedRun]:
        """Runs that have no result, and have not failed."""
        return [r for r in self.record.runs if self._status(r) in ("missing", "interrupted")]

    def _status(self, run: PlannedRun) -> str:
        outcome = self.outcome(run)
        return "missing" if outcome is None else outcome.status


@dataclass(frozen=True)
class StudyResult:
    """A study as the store has it."""

    record: StudyRecord
    cells: Sequence[CellResult]
    run_id: str

    @property
    def runs(self) -> list[PlannedRun]:
        """Every run once."""
        every = {run.identity: run for cell in self.cells for run in cell.record.runs}
        return list(every.values())

    @property
    def failed(self) -> list[tuple[CellResult, PlannedRun]]:
        return [(cell, run) for cell in self.cells for run in cell.failed]

    @property
    def missing(self) -> list[tuple[CellResult, PlannedRun]]:
        """Runs without a result that their study still needs."""
        needed = (cell for cell in self.cells if not cell.facts.get("decided"))
        return [(cell, run) for cell in needed for run in cell.missing]

    def of_kind(self, kind: str) -> list[CellResult]:
        return [cell for cell in self.cells if cell.record.kind == kind]


def as_tags(record: CellRecord | StudyRecord) -> dict[str, str]:
    """A record as tags of a run."""
    content = without_passwords(asdict(record))
    if isinstance(record, CellRecord):
        # By row, as there may be hundreds.
        content["runs"] = [[r.attack, r.seed, r.identity, r.steps] for r in record.runs]
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    parts = [text[start : start + LENGTH] for start in range(0, len(text), LENGTH)]
    named = {f"{RECORD}.{place}": part for place, part in enumerate(parts)}
    return {f"{RECORD}.parts": str(len(parts)), **named}


def _content(tags: Mapping[str, str]) -> dict[str, Any] | None:
    parts = int(tags.get(f"{RECORD}.parts", 0))
    if not parts:
        return None
    found: dict[str, Any] = json.loads("".join(tags[f"{RECORD}.{i}"] for i in range(parts)))
    return found


def read_study(tags: Mapping[str, str]) -> StudyRecord | None:
    """The study that tags speak of, if they do."""
    content = _content(tags)
    return None if content is None else StudyRecord(**content)


def read_cell(tags: Mapping[str, str]) -> CellRecord | None:
    """The cell that tags speak of, if they do."""
    content = _content(tags)
    if content is None:
        return None
    content["runs"] = [PlannedRun(*row) for row in content["runs"]]
    return CellRecord(**content)
