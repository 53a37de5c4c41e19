"""The table and the figure of a sweep: maximal accuracy by attack, worst case by cell."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lit_byz.report import strengths
from lit_byz.report.rendering import (
    MARKERS,
    SIGNS,
    Reader,
    Rendered,
    as_csv,
    files_in,
    of_worst_case,
    plain_worst_case,
    problems,
    shown_worst_case,
    summarise,
)
from lit_byz.tracking.records import CellResult, StudyResult

if TYPE_CHECKING:
    from rich.table import Table


def render(result: StudyResult, folder: Path, read: Reader) -> Rendered:
    """A sweep's table, figure and numbers."""
    cells = result.of_kind("cell")
    title = f"{len(result.runs)} runs on {result.record.facts['dataset']}"
    picture, numbers = files_in(folder, "worst_case")
    figure(cells, title, picture)
    numbers.write_text(csv_of(cells))
    text = folder / "worst_case.txt"
    with text.open("w") as file:
        Console(file=file, width=200).print(table(cells, ""))
    metrics = {
        f"worst_case/{cell.name or place}": cell.worst_case.mean
        for place, cell in enumerate(cells)
        if cell.worst_case.exact
    }
    printed, files = [table(cells, title)], [picture, numbers, text]
    if len(strengths.strengths_of(cells)) > 1:
        drawn, listed = files_in(folder, "strengths")
        strengths.figure(cells, title, drawn)
        listed.write_text(strengths.csv_of(cells))
        printed.append(strengths.table(cells))
        files += [drawn, listed]
    content = {"cells": [_plain(cell) for cell in cells], **problems(result)}
    return Rendered(printed, files, content, metrics)


def attacks_of(cells: Sequence[CellResult]) -> list[str]:
    """The attacks of all cells, each once."""
    return list(dict.fromkeys(attack for cell in cells for attack in cell.attacks))


def table(cells: Sequence[CellResult], title: str) -> "Table":
    """For a terminal: a row per cell, the weakest attack and the worst case standing out."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", caption=_caption(cells))
    made.add_column("cell")
    attacks = attacks_of(cells)
    for attack in attacks:
        made.add_column(attack, justify="right")
    made.add_column("worst case", justify="right")
    best = max((c.worst_case.mean for c in cells if c.worst_case.exact), default=None)
    for cell in cells:
        found = {attack: summarise(cell.of_attack(attack).values()) for attack in attacks}
        low = min((s.mean for s in found.values() if s is not None), default=None)
        row = []
        for attack, summary in found.items():
            failed = sum(run.attack == attack for run in cell.failed)
            text = ("failed" if failed else "") if summary is None else str(summary)
            if summary is not None and failed:
                text += f" ({failed} failed)"
            row.append(f"[red]{text}[/red]" if summary and summary.mean == low else text)
        worst = cell.worst_case
        style = "bold green" if worst.exact and worst.mean == best else "bold"
        made.add_row(cell.name or "one cell", *row, f"[{style}]{shown_worst_case(cell)}[/{style}]")
    return made


def _caption(cells: Sequence[CellResult]) -> str:
    kinds = {cell.worst_case.kind for cell in cells} - {"exact", "unknown"}
    legend = [f"{SIGNS[kind].strip()}: {kind}" for kind in sorted(kinds)]
    return "; ".join(["maximal test accuracy in %", *legend])


def csv_of(cells: Sequence[CellResult]) -> str:
    """Every number: one line per cell, attack and seed, and two per cell's worst case."""
    rows: list[list[Any]] = []
    for cell in cells:
        for run in cell.record.runs:
            outcome = cell.outcome(run)
            accuracy = None if outcome is None else outcome.accuracy
            status = "missing" if outcome is None else outcome.status
            start = [cell.name, run.attack, run.seed]
            if accuracy is None:
                rows.append([*start, "", "", status])
            else:
                rows.append([*start, accuracy.value, accuracy.lower_bound, status])
        worst = cell.worst_case
        for what, value in (("mean", worst.mean), ("std", worst.std)):
            shown = "" if worst.kind == "unknown" else value
            rows.append([cell.name, "worst case", what, shown, not worst.exact, worst.kind])
    return as_csv(["cell", "attack", "seed", "max_accuracy", "lower_bound", "status"], rows)


def figure(cells: Sequence[CellResult], title: str, path: Path) -> None:
    """A bar per cell for its worst case, and a mark for each attack above it."""
    from matplotlib.figure import Figure

    drawn_cells = [cell for cell in cells if of_worst_case(cell.worst_case) is not None]
    attacks = attacks_of(cells)
    drawn = Figure(figsize=(7, 1.2 + 0.55 * max(len(drawn_cells), 1)), layout="constrained")
    axes = drawn.subplots()
    for row, cell in enumerate(drawn_cells):
        worst = cell.worst_case
        error = worst.std if worst.seeds > 1 else None
        hatch = None if worst.exact else "//"
        axes.barh(
            row, worst.mean, height=0.55, color="tab:blue", alpha=0.45, xerr=error, hatch=hatch
        )
        text = shown_worst_case(cell).replace(" (", " % (", 1)
        text = text if " %" in text else f"{text} %"
        # On a bright patch, or the hatching would run through it.
        patch = None if worst.exact else {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        axes.annotate(text, (0.01, row), va="center", fontsize=8, bbox=patch)
    for place, attack in enumerate(attacks):
        points = [
            (summary.mean, row)
            for row, cell in enumerate(drawn_cells)
            if (summary := summarise(cell.of_attack(attack).values())) is not None
        ]
        if points:
            x, y = zip(*points, strict=True)
            marker = MARKERS[place % len(MARKERS)]
            axes.scatter(x, y, marker=marker, s=28, label=attack, zorder=3)
    names = [cell.name or "one cell" for cell in drawn_cells]
    axes.set_yticks(range(len(drawn_cells)), names, fontsize=8)
    axes.set(xlabel="maximal test accuracy (bar: worst case; hatched: a bound)", xlim=(0, 1))
    axes.invert_yaxis()
    axes.set_title(title, fontsize=9)
    axes.grid(axis="x", alpha=0.3)
    if drawn_cells:
        drawn.legend(loc="outside lower center", ncols=min(len(attacks), 6), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, dpi=140)


def _plain(cell: CellResult) -> dict[str, Any]:
    by_attack: dict[str, dict[str, Any]] = {attack: {} for attack in cell.attacks}
    for attack in cell.attacks:
        for seed, accuracy in cell.of_attack(attack).items():
            by_attack[attack][str(seed)] = vars(accuracy)
    worst = plain_worst_case(cell.worst_case)
    return {"cell": cell.name, "worst_case": worst, "max_accuracy": by_attack}
