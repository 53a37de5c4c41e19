"""The mis-specified f: worst-case accuracy against what the server declares and the real f."""

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz._counted import counted
from lit_byz.report.drawing import in_percent, pictures, save
from lit_byz.report.rendering import (
    SIGNS,
    Reader,
    Rendered,
    Summary,
    as_csv,
    caption,
    files_in,
    of_cell,
    problems,
    setting,
)
from lit_byz.report.words import WORST_CASE, cell_words, told_apart
from lit_byz.report.worst_case_table import END_COLUMNS, ends_of_cell
from lit_byz.tracking.records import StudyResult

if TYPE_CHECKING:
    from rich.table import Table

# Declared f̂ and real f to the worst case.
Matrix = Mapping[tuple[int, int], Summary]


def render(result: StudyResult, folder: Path, read: Reader) -> Rendered:
    """Worst cases by declared and real f."""
    found = matrices_of(result)
    title = f"{setting(result)}: {counted(len(result.runs), 'run')}"
    picture, numbers = files_in(folder, "declared")
    figure(found, title, picture)
    numbers.write_text(csv_of(found, ends_of(result)))
    left_out = [tuple(pair) for pair in result.record.facts["left_out"]]
    lines = []
    if left_out:
        pairs = ", ".join(f"(f̂={declared}, f={real})" for declared, real in left_out)
        lines.append(f"left out, for want of 2 f̂ < n and 2 f < n: {pairs}")
    arms = [
        {
            "arm": name,
            "worst_cases": [
                {"declared_f": declared, "f": real, "mean": s.value, "std": s.std, "kind": s.kind}
                for (declared, real), s in sorted(matrix.items())
            ],
        }
        for name, matrix in found.items()
    ]
    content = {"arms": arms, "left_out": [list(p) for p in left_out], **problems(result)}
    return Rendered([table(found, title), *lines], [*pictures(picture), numbers], content)


def matrices_of(result: StudyResult) -> Mapping[str, Matrix]:
    """Each arm's worst cases by f̂ and f."""
    found: dict[str, dict[tuple[int, int], Summary]] = {}
    for cell in result.of_kind("cell"):
        matrix = found.setdefault(cell.facts["arm"], {})
        matrix[cell.facts["assumed"], cell.facts["f"]] = of_cell(cell)
    return found


def ends_of(result: StudyResult) -> Mapping[tuple[str, int, int], Sequence[Any]]:
    """What the runs of each arm, f̂ and f ended with, as a file of numbers has it."""
    cells = result.of_kind("cell")
    return {(c.facts["arm"], c.facts["assumed"], c.facts["f"]): ends_of_cell(c) for c in cells}


def _axes_of(matrices: Mapping[str, Matrix]) -> tuple[list[int], list[int]]:
    keys = list(itertools.chain.from_iterable(matrices.values()))
    return sorted({declared for declared, _ in keys}), sorted({real for _, real in keys})


def table(matrices: Mapping[str, Matrix], title: str) -> "Table":
    """A row per arm and declared f̂, a column per real f."""
    from rich.table import Table

    rows, columns = _axes_of(matrices)
    made = Table(title=title, title_justify="left")
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
    made.caption = caption(made, WORST_CASE, "f̂: what the server assumes")
    return made


def csv_of(
    matrices: Mapping[str, Matrix], ends: Mapping[tuple[str, int, int], Sequence[Any]]
) -> str:
    """A line per arm, declared and real f."""
    nothing = [""] * len(END_COLUMNS)
    rows = [
        [name, *pair, s.value, s.std, s.seeds, s.kind, *ends.get((name, *pair), nothing)]
        for name, matrix in matrices.items()
        for pair, s in sorted(matrix.items())
    ]
    header = ["arm", "declared_f", "real_f", "worst_case", "std", "seeds", "kind"]
    return as_csv([*header, *END_COLUMNS], rows)


def figure(matrices: Mapping[str, Matrix], title: str, path: Path) -> None:
    """A heat map per arm: declared f̂ upwards, real f to the right; bold where they agree."""
    from matplotlib.figure import Figure

    rows, columns = _axes_of(matrices)
    size = (1.2 + len(matrices) * (1.2 + 0.75 * max(len(columns), 2)), 1.6 + 0.6 * len(rows))
    drawn = Figure(figsize=size, layout="constrained")
    panels = drawn.subplots(1, max(len(matrices), 1), squeeze=False)[0]
    image = None
    names = told_apart(list(matrices), partial(cell_words, empty="one arm"))
    for axes, words, matrix in zip(panels, names, matrices.values(), strict=False):
        image = axes.imshow(
            _grid(matrix, rows, columns), vmin=0, vmax=1, cmap="viridis", origin="lower"
        )
        for (declared, real), found in matrix.items():
            if found.value is None:
                continue
            place = (columns.index(real), rows.index(declared))
            colour = "white" if found.mean < 0.6 else "black"
            weight = "bold" if declared == real else "normal"
            text = f"{SIGNS[found.kind]}{100 * found.mean:.0f}"
            axes.annotate(
                text, place, ha="center", va="center", color=colour, fontsize=8, weight=weight
            )
        axes.set_xticks(range(len(columns)), [str(real) for real in columns])
        axes.set_yticks(range(len(rows)), [str(declared) for declared in rows])
        axes.set(xlabel="real f (Byzantine workers)", ylabel="declared f̂")
        axes.set_title(words, fontsize=9)
    if image is not None:
        bar = drawn.colorbar(image, ax=list(panels))
        bar.set_label(WORST_CASE.replace(" maximal", "\nmaximal"), fontsize=8)
        in_percent(bar.ax.yaxis)
    drawn.suptitle(title, fontsize=9)
    save(drawn, path)


def _grid(matrix: Matrix, rows: Sequence[int], columns: Sequence[int]) -> list[list[float]]:
    known = {pair: found.mean for pair, found in matrix.items() if found.value is not None}
    return [[known.get((row, column), math.nan) for column in columns] for row in rows]
