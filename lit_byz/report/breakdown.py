"""Breakdown points: worst-case accuracy against f, and against declared and real f."""

import csv
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lit_byz.report.worst_case_table import Summary

if TYPE_CHECKING:
    from rich.table import Table

SIGNS = {"exact": "", "at most": "≤ ", "at least": "≥ "}


@dataclass(frozen=True)
class Level:
    """A worst-case accuracy at one f, mean over seeds.

    ``kind`` is exact; "at most" where runs that were not needed are missing; "at least" where
    some were stopped early.
    """

    mean: float
    std: float = 0.0
    seeds: int = 1
    kind: str = "exact"

    def __str__(self) -> str:
        return f"{SIGNS[self.kind]}{Summary(self.mean, self.std, self.seeds)}"


@dataclass(frozen=True)
class ArmResult:
    """What is known of one arm: its levels by f, and its answer.

    ``breakdown`` is the smallest f below the threshold, None if there is none up to the largest f;
    an arm that is not ``decided`` has no answer yet. ``scanned`` is the full grid's answer.
    """

    levels: Mapping[int, Level]
    breakdown: int | None
    decided: bool = True
    scanned: "FullAnswer | None" = None


@dataclass(frozen=True)
class FullAnswer:
    """The answer of the full grid; ``monotone`` says whether every larger f is below too."""

    breakdown: int | None
    monotone: bool
    levels: Mapping[int, Level]


Arms = Mapping[str, ArmResult]


def answer(breakdown: int | None, decided: bool, most: int) -> str:
    """An arm's answer in words."""
    if not decided:
        return "undecided"
    return f"f = {breakdown}" if breakdown is not None else f"holds to f = {most}"


def table(arms: Arms, most: int, threshold: float, title: str) -> "Table":
    """A row per arm: what was found at each f that was probed, and where it breaks down."""
    from rich.table import Table

    caption = f"worst-case maximal test accuracy in %; threshold {100 * threshold:g}"
    made = Table(title=title, title_justify="left", caption=caption)
    made.add_column("arm", no_wrap=True)
    probed = sorted({f for arm in arms.values() for f in arm.levels})
    for f in probed:
        made.add_column(f"f={f}", justify="right", no_wrap=True)
    made.add_column("breaks down", justify="right")
    full = any(arm.scanned for arm in arms.values())
    if full:
        made.add_column("full grid", justify="right")
    for name, arm in arms.items():
        row = [_cell(arm.levels.get(f), threshold) for f in probed]
        row.append(f"[bold]{answer(arm.breakdown, arm.decided, most)}[/bold]")
        if full:
            seen = arm.scanned
            row.append("" if seen is None else _scan_answer(seen, most))
        made.add_row(name or "one arm", *row)
    return made


def _scan_answer(seen: FullAnswer, most: int) -> str:
    text = answer(seen.breakdown, True, most)
    return text if seen.monotone else f"{text}, not monotone"


def _cell(level: Level | None, threshold: float) -> str:
    if level is None:
        return ""
    return f"[red]{level}[/red]" if level.mean < threshold else str(level)


def as_csv(arms: Arms) -> str:
    """A line per arm and f: of the search, and of the full grid where it was computed."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["arm", "by", "f", "worst_case", "std", "seeds", "kind", "breakdown_f"])
    for name, arm in arms.items():
        sources = [("search", arm.levels, arm.breakdown)]
        if arm.scanned is not None:
            sources.append(("full grid", arm.scanned.levels, arm.scanned.breakdown))
        for by, levels, breakdown in sources:
            for f, level in sorted(levels.items()):
                row = [name, by, f, level.mean, level.std, level.seeds, level.kind]
                writer.writerow([*row, "" if breakdown is None else breakdown])
    return text.getvalue()


def figure(arms: Arms, most: int, threshold: float, title: str, path: Path) -> None:
    """Worst-case accuracy against f: the probed points, the threshold, and where an arm breaks."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(6.4, 4), layout="constrained")
    axes = drawn.subplots()
    for place, (name, arm) in enumerate(arms.items()):
        colour = f"C{place % 10}"
        full = arm.scanned is not None
        levels = arm.scanned.levels if arm.scanned is not None else arm.levels
        x = sorted(levels)
        means = [levels[f].mean for f in x]
        label = f"{name or 'one arm'}: {answer(arm.breakdown, arm.decided, most)}"
        style = "-" if full else ":"
        axes.plot(x, means, style, color=colour, label=label, linewidth=1.3)
        for f, level in sorted(arm.levels.items()):
            error = level.std if level.seeds > 1 else None
            marker = {"exact": "o", "at most": "v", "at least": "^"}[level.kind]
            axes.errorbar(f, level.mean, yerr=error, fmt=marker, color=colour, markersize=6)
        if arm.breakdown is not None:
            # In turns where two arms break at the same f.
            dashes = (4 * place, (4, 4 * len(arms) - 4 or 4))
            axes.axvline(arm.breakdown, color=colour, linestyle=dashes, alpha=0.7)
    axes.axhline(threshold, color="black", linewidth=0.8)
    axes.annotate(
        f"threshold {threshold:g}", (most, threshold), ha="right", va="bottom", fontsize=8
    )
    axes.set(xlabel="Byzantine workers f", ylabel="worst-case maximal accuracy", ylim=(0, 1))
    axes.set_xticks(range(1, most + 1))
    axes.set_xlim(0.7, most + 0.3)
    axes.set_title(f"{title}\n● exact, ▼ at most, ▲ at least; dashed: breakdown", fontsize=8)
    axes.grid(alpha=0.3)
    if arms:
        axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, dpi=140)


# Declared f̂ and real f to the worst case.
Matrix = Mapping[tuple[int, int], Summary]


def _axes_of(matrices: Mapping[str, Matrix]) -> tuple[list[int], list[int]]:
    keys = list(itertools.chain.from_iterable(matrices.values()))
    return sorted({declared for declared, _ in keys}), sorted({real for _, real in keys})


def declared_table(matrices: Mapping[str, Matrix], title: str) -> "Table":
    """A row per arm and declared f̂, a column per real f."""
    from rich.table import Table

    rows, columns = _axes_of(matrices)
    caption = "worst-case maximal test accuracy in %; f̂: what the server assumes"
    made = Table(title=title, title_justify="left", caption=caption)
    made.add_column("arm")
    made.add_column("declared f̂", justify="right")
    for real in columns:
        made.add_column(f"real f={real}", justify="right")
    for name, matrix in matrices.items():
        for declared in rows:
            found = [matrix.get((declared, real)) for real in columns]
            shown = [
                "" if s is None else f"[bold]{s}[/bold]" if declared == real else str(s)
                for s, real in zip(found, columns, strict=True)
            ]
            made.add_row(name or "one arm", str(declared), *shown)
    return made


def declared_csv(matrices: Mapping[str, Matrix]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["arm", "declared_f", "real_f", "worst_case", "std", "seeds", "lower_bound"])
    for name, matrix in matrices.items():
        for (declared, real), s in sorted(matrix.items()):
            writer.writerow([name, declared, real, s.mean, s.std, s.seeds, s.lower_bound])
    return text.getvalue()


def declared_figure(matrices: Mapping[str, Matrix], title: str, path: Path) -> None:
    """A heat map per arm: declared f̂ upwards, real f to the right; bold where they agree."""
    from matplotlib.figure import Figure

    rows, columns = _axes_of(matrices)
    size = (1.2 + len(matrices) * (1.2 + 0.75 * max(len(columns), 2)), 1.6 + 0.6 * len(rows))
    drawn = Figure(figsize=size, layout="constrained")
    panels = drawn.subplots(1, max(len(matrices), 1), squeeze=False)[0]
    image = None
    for axes, (name, matrix) in zip(panels, matrices.items(), strict=False):
        image = axes.imshow(
            _grid(matrix, rows, columns), vmin=0, vmax=1, cmap="viridis", origin="lower"
        )
        for (declared, real), found in matrix.items():
            place = (columns.index(real), rows.index(declared))
            colour = "white" if found.mean < 0.6 else "black"
            weight = "bold" if declared == real else "normal"
            text = f"{100 * found.mean:.0f}"
            axes.annotate(
                text, place, ha="center", va="center", color=colour, fontsize=8, weight=weight
            )
        axes.set_xticks(range(len(columns)), [str(real) for real in columns])
        axes.set_yticks(range(len(rows)), [str(declared) for declared in rows])
        axes.set(xlabel="real f", ylabel="declared f̂")
        axes.set_title(name or "one arm", fontsize=9)
    if image is not None:
        drawn.colorbar(image, ax=list(panels), label="worst-case maximal accuracy")
    drawn.suptitle(title, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, dpi=140)


def _grid(matrix: Matrix, rows: Sequence[int], columns: Sequence[int]) -> list[list[float]]:
    nothing = float("nan")
    return [
        [found.mean if (found := matrix.get((row, column))) else nothing for column in columns]
        for row in rows
    ]
