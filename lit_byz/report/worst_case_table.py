"""The table and the figure of a sweep: maximal accuracy by attack, worst case by cell."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lit_byz._counted import counted
from lit_byz.report import strengths, worst_case_figure
from lit_byz.report.drawing import chance_of, pictures
from lit_byz.report.rendering import (
    Reader,
    Rendered,
    as_csv,
    caption,
    cell_in_common,
    columns,
    files_in,
    of_attack,
    of_worst_case,
    plain_worst_case,
    problems,
    shown_attack,
    shown_end,
    shown_worst_case,
    width_of,
)
from lit_byz.report.words import ACCURACY, legend_of_attacks
from lit_byz.tracking.cells import NAMES as ENDS
from lit_byz.tracking.records import CellResult, PlannedRun, StudyResult
from lit_byz.tracking.worst_case import WorstCase

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = ["cell", "attack", "seed", "max_accuracy", "lower_bound", "status"]
# What the runs ended with, in every file of numbers.
END_COLUMNS = [column for name in ENDS.values() for column in (name, f"{name}_kind")]
# What of the runs' ends is shown, as a table calls it.
HEADINGS = {"last_accuracy": "last", "mean_last": "last five"}
OF_THE_ENDS = "last, last five: worst cases of the last evaluation, of the mean of the last 5"
WIDEST = 100


def render(result: StudyResult, folder: Path, read: Reader) -> Rendered:
    """A sweep's table, figure and numbers."""
    cells = result.of_kind("cell")
    title = f"{counted(len(result.runs), 'run')}: {cell_in_common(result)}"
    picture, numbers = files_in(folder, "worst_case")
    chance = chance_of(str(result.record.facts["dataset"]))
    worst_case_figure.figure(cells, title, picture, chance)
    numbers.write_text(csv_of(cells))
    text = folder / "worst_case.txt"
    with text.open("w") as file:
        Console(file=file, width=200, force_jupyter=False).print(table(cells, ""))
    printed, files = tables(cells, title), [*pictures(picture), numbers, text]
    if len(strengths.strengths_of(cells)) > 1:
        drawn, listed = files_in(folder, "strengths")
        strengths.figure(cells, title, drawn, chance)
        listed.write_text(strengths.csv_of(cells))
        printed.append(strengths.table(cells))
        files += [*pictures(drawn), listed]
    content = {"cells": [_plain(cell) for cell in cells], **problems(result)}
    return Rendered(printed, files, content)


def attacks_of(cells: Sequence[CellResult]) -> list[str]:
    """The attacks of all cells, each once."""
    return list(dict.fromkeys(attack for cell in cells for attack in cell.attacks))


def tables(cells: Sequence[CellResult], title: str) -> "list[Table]":
    """The table; where that would be too wide, what the runs ended with in one of its own."""
    whole = table(cells, title)
    if width_of(whole) <= min(WIDEST, columns() or WIDEST):
        return [whole]
    return [table(cells, title, ends=False), _ends_table(cells)]


def _ends_table(cells: Sequence[CellResult]) -> "Table":
    from rich.table import Table

    made = Table()
    made.add_column("cell", overflow="fold")
    for heading in ("worst case", *HEADINGS.values()):
        made.add_column(heading, justify="right")
    for cell in cells:
        ends = [shown_end(cell, measure) for measure in ENDS]
        made.add_row(cell.name or "one cell", f"[bold]{shown_worst_case(cell)}[/bold]", *ends)
    made.caption = caption(made, "worst cases in %", OF_THE_ENDS)
    return made


def table(cells: Sequence[CellResult], title: str, *, ends: bool = True) -> "Table":
    """For a terminal: a row per cell, the weakest attack and the worst case standing out.

    With ``ends`` also the worst cases of what the runs ended with.
    """
    from rich.table import Table

    made = Table(title=title, title_justify="left")
    # Where a terminal is too narrow, words are broken and nothing is cut off.
    made.add_column("cell", overflow="fold")
    attacks = attacks_of(cells)
    for heading in (*attacks, "worst case", *(HEADINGS.values() if ends else ())):
        made.add_column(heading, justify="right", overflow="fold")
    best = max((c.worst_case.mean for c in cells if c.worst_case.exact), default=None)
    for cell in cells:
        found = {attack: of_attack(cell, attack) for attack in attacks}
        low = min((s.mean for s in found.values() if s is not None), default=None)
        row = []
        for attack, summary in found.items():
            text = shown_attack(cell, attack)
            row.append(f"[red]{text}[/red]" if summary and summary.mean == low else text)
        worst = cell.worst_case
        style = "bold green" if worst.exact and worst.mean == best else "bold"
        row.append(f"[{style}]{shown_worst_case(cell)}[/{style}]")
        row += [shown_end(cell, measure) for measure in ENDS] if ends else []
        made.add_row(cell.name or "one cell", *row)
    first = caption(made, ACCURACY, *([OF_THE_ENDS] if ends else []))
    names = legend_of_attacks(attacks)
    made.caption = f"{first}\n{names}" if names else first
    return made


def csv_of(cells: Sequence[CellResult]) -> str:
    """Every number: one line per cell, attack and seed, and two per cell's worst case."""
    rows: list[list[Any]] = []
    for cell in cells:
        ends = [ends_of_run(cell, run) for run in cell.record.runs]
        rows += [[*row, *end] for row, end in zip(run_rows(cell), ends, strict=True)]
        worst = cell.worst_case
        for what in ("mean", "std"):
            row = [cell.name, "worst case", what, _number(worst, what)]
            row += [worst.lower_bound, worst.kind]
            rows.append([*row, *ends_of_cell(cell, what)])
    return as_csv([*COLUMNS, *END_COLUMNS], rows)


def _number(worst: WorstCase, what: str) -> float | None:
    summary = of_worst_case(worst)
    if summary is None:
        return None
    return summary.std if what == "std" else summary.mean


def ends_of_cell(cell: CellResult, what: str = "mean") -> list[Any]:
    """The worst cases of what a cell's runs ended with, and what of them is known."""
    found = [cell.worst_cases[measure] for measure in ENDS]
    return [entry for worst in found for entry in (_number(worst, what), worst.kind)]


def ends_of_run(cell: CellResult, run: PlannedRun) -> list[Any]:
    """What a run ended with, and whether that is known."""
    outcome = cell.outcome(run)
    found = [None if outcome is None else outcome.measured(measure) for measure in ENDS]
    pairs = [("", "unknown") if end is None else (end.value, "exact") for end in found]
    return [entry for pair in pairs for entry in pair]


def run_rows(cell: CellResult) -> list[list[Any]]:
    """The runs of a cell as rows below :data:`COLUMNS`."""
    rows: list[list[Any]] = []
    for run in cell.record.runs:
        outcome = cell.outcome(run)
        accuracy = None if outcome is None else outcome.accuracy
        status = "missing" if outcome is None else outcome.status
        start = [cell.name, run.attack, run.seed]
        if accuracy is None:
            rows.append([*start, "", "", status])
        else:
            rows.append([*start, accuracy.value, accuracy.lower_bound, status])
    return rows


def _plain(cell: CellResult) -> dict[str, Any]:
    by_attack: dict[str, dict[str, Any]] = {attack: {} for attack in cell.attacks}
    for attack in cell.attacks:
        for seed, accuracy in cell.of_attack(attack).items():
            by_attack[attack][str(seed)] = vars(accuracy)
    worst = plain_worst_case(cell.worst_case)
    ends = {name: plain_worst_case(cell.worst_cases[m]) for m, name in ENDS.items()}
    return {"cell": cell.name, "worst_case": worst, "max_accuracy": by_attack, "ends": ends}
