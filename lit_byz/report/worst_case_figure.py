"""The figure of a sweep: a bar per cell for its worst case, a mark for each attack."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lit_byz.report import drawing, rendering
from lit_byz.report import words as in_words
from lit_byz.report.drawing import draw_chance, in_percent, legend_below, save
from lit_byz.report.rendering import (
    MARKERS,
    is_drawn,
    mark_of,
    of_worst_case,
    plain_worst_case,
    shown_worst_case,
    summarise,
)
from lit_byz.report.words import ACCURACY, attack_words, cell_words, told_apart
from lit_byz.tracking.records import CellResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Letters of a cell's name in a line, and attacks that are named in a bar; more are counted.
NAME, MOST_NAMES = 34, 2
# A bar's text is this far from the axis, and a row this high, in inches.
MARGIN, ROW = 0.008, 0.5


def figure(
    cells: Sequence[CellResult], title: str, path: Path, chance: float | None = None
) -> None:
    """Draw it, unless it is drawn: what the table says is in it, bounds and failures too."""
    attacks = list(dict.fromkeys(attack for cell in cells for attack in cell.attacks))
    words = dict(zip(attacks, told_apart(attacks, attack_words), strict=True))
    shown = [
        repr((c.name, c.known, plain_worst_case(c.worst_case), _text(c, words))) for c in cells
    ]
    code = [module.__file__ or "" for module in (drawing, rendering, in_words)]
    mark = mark_of(__file__, title, repr(chance), *shown, *map(mark_of, code))
    if is_drawn(path, mark):
        return
    from matplotlib.figure import Figure

    rows, marks = max(len(cells), 1), -(-len(attacks) // 3)
    drawn = Figure(figsize=(7.4, 1.1 + ROW * rows + 0.2 * marks), layout="constrained")
    axes = drawn.subplots()
    _bars(axes, cells, words)
    for place, (attack, label) in enumerate(words.items()):
        _marks(axes, cells, attack, label, place)
    draw_chance(axes, chance, vertical=True)
    names = [_in_lines(name) for name in told_apart([cell.name for cell in cells], cell_words)]
    axes.set_yticks(range(len(cells)), names, fontsize=8)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_xlim(0, 1.02)
    axes.set_xlabel(f"{ACCURACY} ({_signs(cells)})", fontsize=9)
    axes.tick_params(labelsize=8)
    in_percent(axes.xaxis)
    axes.set_title(title, fontsize=9)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    legend_below(drawn, [axes])
    save(drawn, path, mark)


def _in_lines(name: str) -> str:
    """A long name in several lines, broken behind commas."""
    first, *parts = name.split(", ")
    lines = [first]
    for part in parts:
        if len(lines[-1]) + len(part) + 2 <= NAME:
            lines[-1] += f", {part}"
        else:
            lines[-1] += ","
            lines.append(part)
    return "\n".join(lines)


def _bars(axes: "Axes", cells: Sequence[CellResult], words: Mapping[str, str]) -> None:
    for row, cell in enumerate(cells):
        worst = cell.worst_case
        if of_worst_case(worst) is not None:
            axes.barh(
                row,
                worst.mean,
                height=0.62,
                color="tab:blue",
                alpha=0.4,
                xerr=worst.std,
                error_kw={"elinewidth": 0.9},
                hatch="" if worst.exact else "//",
                edgecolor="white",
            )
        # On a bright patch, or hatching and marks would run through it.
        bright = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.2}
        text = _text(cell, words)
        noted = axes.annotate(text, (MARGIN, row), va="center", fontsize=8, bbox=bright, zorder=5)
        noted.set_in_layout(False)  # or there would be no room for the bars


def _signs(cells: Sequence[CellResult]) -> str:
    """What the bars are, as far as they are there."""
    found = [cell.worst_case for cell in cells]
    bounded = any(of_worst_case(worst) is not None and not worst.exact for worst in found)
    return "bar: worst case; hatched: a bound" if bounded else "bar: worst case"


def _text(cell: CellResult, words: Mapping[str, str]) -> str:
    """The worst case with the table's signs, and the attacks that failed or are missing."""
    text, bracket, _ = shown_worst_case(cell).partition(" (")
    reasons = []
    if bracket:
        for what, runs in (("failed", cell.failed), ("missing", cell.missing)):
            names = dict.fromkeys(words[run.attack] for run in runs)
            if len(names) > MOST_NAMES:
                reasons.append(f"{what}: {len(names)} of {len(cell.attacks)} attacks")
            elif names:
                reasons.append(f"{what}: {', '.join(names)}")
    unit = "" if text == "unknown" else " %"
    return f"{text}{unit} ({'; '.join(reasons)})" if reasons else f"{text}{unit}"


def _marks(axes: "Axes", cells: Sequence[CellResult], attack: str, words: str, place: int) -> None:
    """An attack's accuracies: filled where they are known, open with an arrow where at least.

    Open without one where seeds failed or are missing.
    """
    marker, colour = MARKERS[place % len(MARKERS)], f"C{(place + 1) % 10}"
    xs, ys, faces = [], [], []
    for row, cell in enumerate(cells):
        summary = summarise(cell.of_attack(attack).values())
        if summary is None:
            continue
        # A little above each other: attacks often leave the same accuracy.
        y = row + 0.11 * ((place % 5) - 2)
        exact = summary.kind == "exact"
        whole = summary.seeds == sum(run.attack == attack for run in cell.record.runs)
        xs.append(summary.mean)
        ys.append(y)
        faces.append(colour if exact and whole else "white")
        if not exact:
            axes.annotate(
                "",
                (min(summary.mean + 0.05, 1.02), y),
                (summary.mean + 0.008, y),
                arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 0.9},
                zorder=4,
            )
    known = bool(xs)  # else the legend says that nothing is
    axes.scatter(
        xs,
        ys,
        marker=marker,
        s=30,
        facecolors=faces if known else "white",
        edgecolors=colour,
        label=words if known else f"{words}: no result",
        zorder=4,
    )
