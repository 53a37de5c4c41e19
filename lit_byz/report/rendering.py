"""What a report of a study consists of, and how its numbers are written."""

import csv
import hashlib
import io
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz.report.drawing import pictures
from lit_byz.tracking.records import CellResult, StudyResult
from lit_byz.tracking.worst_case import Accuracy, WorstCase

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SIGNS = {"exact": "", "at least": "≥ ", "at most": "≤ "}
MARKERS = "osDv^P*X<>"

# Another study of the same store, by the id of its run.
Reader = Callable[[str], StudyResult]


@dataclass(frozen=True)
class Rendered:
    """A report: what is printed, the files that were made, and numbers for MLflow and JSON."""

    printed: Sequence[Any]
    files: Sequence[Path]
    content: Mapping[str, Any]
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """Mean ± standard deviation over seeds in per cent, as it is shown.

    One seed has no deviation, nor has a bound: some of what it is the mean of are bounds too.
    ``failed`` and ``missing`` are the runs for want of which it is not known better.
    """

    mean: float
    std: float | None
    seeds: int
    kind: str = "exact"
    failed: int = 0
    missing: int = 0

    @property
    def value(self) -> float | None:
        """The mean; None where nothing is known, which any mean would hide."""
        return None if self.kind == "unknown" else self.mean

    @property
    def reasons(self) -> list[str]:
        """Why it is not known better."""
        counts = {"failed": self.failed, "missing": self.missing}
        return [f"{count} {what}" for what, count in counts.items() if count]

    def __str__(self) -> str:
        spread = f" ± {100 * self.std:.1f}" if self.std is not None else ""
        known = self.kind != "unknown"
        text = f"{SIGNS[self.kind]}{100 * self.mean:.1f}{spread}" if known else "unknown"
        return f"{text} ({', '.join(self.reasons)})" if self.reasons else text


def summarise(accuracies: Iterable[Accuracy]) -> Summary | None:
    """The mean over seeds; a lower bound if any of them is one."""
    found = list(accuracies)
    if not found:
        return None
    values = tuple(accuracy.value for accuracy in found)
    if any(accuracy.lower_bound for accuracy in found):
        return Summary(statistics.fmean(values), None, len(values), "at least")
    return Summary(statistics.fmean(values), _spread(values), len(values))


@lru_cache(maxsize=10_000)
def _spread(values: tuple[float, ...]) -> float | None:
    # In fractions, which takes its time, and for every table and figure anew.
    return statistics.stdev(values) if len(values) > 1 else None


def of_worst_case(found: WorstCase) -> Summary | None:
    """A worst case as it is shown; None where nothing is known of it."""
    if found.kind == "unknown":
        return None
    return Summary(found.mean, found.std, found.seeds, found.kind)


def of_cell(cell: CellResult) -> Summary:
    """A cell's worst case, with the runs that failed, and those that it still needs."""
    found = cell.worst_case
    missing = 0 if cell.facts.get("decided") else len(cell.missing)
    return Summary(found.mean, found.std, found.seeds, found.kind, len(cell.failed), missing)


def shown_worst_case(cell: CellResult) -> str:
    """A cell's worst case, and why it is only a bound where it is one."""
    return str(of_cell(cell))


def of_attack(cell: CellResult, attack: str) -> Summary | None:
    """The mean over the seeds under an attack, and how many seeds it lacks; None if all."""
    summary = summarise(cell.of_attack(attack).values())
    if summary is None:
        return None
    failed = sum(run.attack == attack for run in cell.failed)
    missing = sum(run.attack == attack for run in cell.missing)
    return replace(summary, failed=failed, missing=missing)


def shown_attack(cell: CellResult, attack: str) -> str:
    """The accuracy under an attack, and on how many seeds it is not known."""
    summary = of_attack(cell, attack)
    if summary is None:
        return "failed" if any(run.attack == attack for run in cell.failed) else ""
    return str(summary)


def shown_end(cell: CellResult, measure: str) -> str:
    """The worst case of what a cell's runs ended with, by the same rules."""
    summary = of_worst_case(cell.worst_cases[measure])
    return "unknown" if summary is None else str(summary)


def legend(texts: Iterable[str], why: Mapping[str, str] | None = None) -> list[str]:
    """What the signs of bounds mean that stand in texts, and ``why`` there are such bounds.

    >>> legend(["83.2", "≤ 75.1 (1 failed)"]), legend(["≥ 60.0"], {"at least": "stopped early"})
    (['≤: at most'], ['≥: at least (stopped early)'])
    """
    shown = "\n".join(texts)
    kinds = [kind for kind, sign in SIGNS.items() if sign and sign in shown]
    reasons = {kind: f" ({reason})" for kind, reason in (why or {}).items()}
    return [f"{SIGNS[kind].strip()}: {kind}{reasons.get(kind, '')}" for kind in kinds]


def width_of(part: Any) -> int:
    """How wide something is that is printed, if nothing has to be broken."""
    from rich.console import Console

    return Console(width=10_000).measure(part).maximum


def columns() -> int | None:
    """How wide the terminal is; None where there is none, and nobody says it."""
    from rich.console import Console

    console = Console()
    return console.width if console.is_terminal or "COLUMNS" in os.environ else None


def console_for(parts: Iterable[Any]) -> "Console":
    """The terminal; where there is none, as wide as the tables are."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if columns() is None:
        tables = [part for part in parts if isinstance(part, Table)]
        console.width = max([console.width, *map(width_of, tables)])
    return console


def caption(made: "Table", *what: str, why: Mapping[str, str] | None = None) -> str:
    """What a table shows, and the signs that stand in it: of no column that it has not."""
    texts = [str(text) for column in made.columns for text in column.cells]
    return "; ".join([*what, *legend(texts, why)])


def as_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows below a header, as text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def files_in(folder: Path, name: str) -> tuple[Path, Path]:
    """Where a report's figure and its numbers go; the folder is made."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.png", folder / f"{name}.csv"


def mark_of(code: str, *shown: str) -> str:
    """What tells pictures apart: all that is shown, and the code (a file) that draws it."""
    parts = [metadata.version("matplotlib"), Path(code).read_text(encoding="utf-8"), *shown]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_drawn(path: Path, mark: str) -> bool:
    """Whether a PNG with this mark in its metadata is there: large studies take seconds to draw."""
    if not all(each.is_file() for each in pictures(path)):
        return False
    with path.open("rb") as file:
        return mark.encode() in file.read(1000)


def images_of(judged_on: str) -> str:
    """The images that accuracies are of: ``test``, or ``validation`` for those held out."""
    return "test" if judged_on == "test" else "validation"


def setting(result: StudyResult) -> str:
    """What all runs of a study have in common, for its title."""
    facts = result.record.facts
    return ", ".join([facts["dataset"], facts["partition"], *_workers(result)])


def cell_in_common(result: StudyResult) -> str:
    """The same with f and the rule, but without what varies."""
    facts = result.record.facts
    return ", ".join([facts["cell"] or facts["dataset"], *_workers(result)])


def _workers(result: StudyResult) -> list[str]:
    honest = result.record.facts["honest"]
    return [] if honest is None else [f"{honest} honest workers"]


def problems(result: StudyResult) -> dict[str, Any]:
    """Runs that failed or are missing, for a program to read."""
    return {
        "failed": {
            label(cell, run.label): (cell.outcomes[run.identity].error or "")
            for cell, run in result.failed
        },
        "missing": [label(cell, run.label) for cell, run in result.missing],
    }


def label(cell: CellResult, run: str) -> str:
    """A run with the name of its cell."""
    return f"{cell.name} | {run}" if cell.name else run


def plain_worst_case(found: WorstCase) -> dict[str, Any] | None:
    """For JSON."""
    if found.kind == "unknown":
        return None
    return {"mean": found.mean, "std": found.std, "kind": found.kind}
