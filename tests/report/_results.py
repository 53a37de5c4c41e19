"""Small studies as the ledger would give them, and what a table says."""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import CellRecord, CellResult, PlannedRun, StudyRecord, StudyResult

FACTS = {"dataset": "digits", "partition": "extreme", "honest": 6, "cell": "digits, extreme, f=1"}

# A finished run's accuracy; what a run reached before it was stopped, as in ">= 0.5"; "failed" or
# "interrupted"; None for a run that was never begun.
Known = float | str | None


def make_cell(
    name: str,
    known: Mapping[str, Mapping[int, Known]],
    kind: str = "cell",
    *,
    steps: int = 40,
    **facts: Any,
) -> CellResult:
    """A cell with what is known of its runs, by attack and seed."""
    runs, outcomes = [], {}
    for attack, by_seed in known.items():
        for seed, value in by_seed.items():
            identity = f"{name} {attack} {seed}"
            runs.append(PlannedRun(attack, seed, identity, steps))
            if value is not None:
                outcomes[identity] = _outcome(identity, value)
    return CellResult(CellRecord(name, runs, kind, facts), outcomes, f"run of {name}")


def _outcome(identity: str, value: float | str) -> Outcome:
    if isinstance(value, float):
        return Outcome(identity, "finished", value)
    if value.startswith(">="):
        return Outcome(identity, "bounded", float(value[2:]))
    return Outcome(identity, value, error="RuntimeError: it broke" if value == "failed" else None)


def with_ends(cell: CellResult) -> CellResult:
    """The same where runs that are complete have recorded what they ended with."""
    outcomes = {
        identity: replace(found, last_accuracy=0.9 * top, mean_last=0.8 * top)
        for identity, found in cell.outcomes.items()
        for top in [found.max_accuracy or 0.0]
    }
    return replace(cell, outcomes=outcomes)


def ends_in(rows: Iterable[Mapping[str, str]]) -> dict[tuple[str, str], list[str]]:
    """What a file of numbers says of runs' ends, and of their worst cases; by attack and seed."""
    columns = ("last_accuracy", "last_accuracy_kind", "mean_last_5", "mean_last_5_kind")
    return {
        (row["attack"].replace("worst case", ""), row["seed"]): [row[name] for name in columns]
        for row in rows
        if not row.get("what", "").startswith("initial")
    }


def make_study(kind: str, cells: Sequence[CellResult], **facts: Any) -> StudyResult:
    return StudyResult(StudyRecord(kind, "key", "a study", {**FACTS, **facts}), cells, "an id")


def no_other(run_id: str) -> StudyResult:
    """For a report that needs no other study."""
    raise AssertionError(f"the report asked for run {run_id}")


def text_of(*made: Any) -> str:
    """What is printed, in one line per row."""
    console = Console(width=220, record=True, file=io.StringIO())
    for part in made:
        console.print(part)
    return console.export_text()
