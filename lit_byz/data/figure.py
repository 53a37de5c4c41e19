"""The paper's picture of heterogeneity: how the labels are distributed over the honest workers."""

import io
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

INCHES = 0.42  # side of the cell of one worker and one label
FILLED = 0.92  # diameter of the largest bubble, as a part of its cell


def label_figure(counts: np.ndarray, title: str) -> "Figure":
    """A bubble for each worker (x) and label (y), its area proportional to the number of points.

    ``counts`` is what :func:`lit_byz.data.label_counts` gives: (workers, classes).
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    workers, classes = counts.shape
    width, height = workers * INCHES + 1.9, classes * INCHES + 1.1
    figure = Figure(figsize=(width, height), dpi=160)
    axes = figure.add_axes(
        (0.65 / width, 0.6 / height, workers * INCHES / width, classes * INCHES / height)
    )
    largest = (FILLED * INCHES * 72) ** 2  # matplotlib wants the squared diameter in points
    worker, label = np.nonzero(counts)
    axes.scatter(
        worker,
        label,
        s=largest * counts[worker, label] / counts.max(),
        c=[
            mpl.colormaps["tab10" if classes <= 10 else "turbo"](_shade(int(y), classes))
            for y in label
        ],
        linewidths=0,
        alpha=0.9,
        clip_on=False,
        zorder=2,
    )
    axes.set(
        xlim=(-0.5, workers - 0.5),
        ylim=(-0.5, classes - 0.5),
        xticks=range(workers),
        yticks=range(classes),
        xlabel="Honest worker",
        ylabel="Label",
    )
    axes.set_title(title, fontsize=11)
    axes.tick_params(length=0, labelsize=8)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[:].set_color("0.7")
    for size in _legend_sizes(int(counts.max())):
        area = largest * size / counts.max()
        axes.scatter([], [], s=area, color="0.6", linewidths=0, label=f"{size:,}")
    axes.legend(
        title="Points",
        loc="center left",
        bbox_to_anchor=(1.02, 0.5),
        frameon=False,
        fontsize=8,
        title_fontsize=8,
        labelspacing=2.4,
        handletextpad=1.2,
        borderpad=1.0,
    )
    return figure


def save_label_figure(counts: np.ndarray, title: str, path: Path) -> None:
    """Write :func:`label_figure` to a file, in the format that its name ends in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = tuple(tuple(row) for row in counts.tolist())
    path.write_bytes(_drawn(table, title, path.suffix.removeprefix(".")))


@lru_cache(maxsize=16)  # the runs of a sweep differ in their attacks more often than in their data
def _drawn(counts: tuple[tuple[int, ...], ...], title: str, ending: str) -> bytes:
    file = io.BytesIO()
    label_figure(np.array(counts), title).savefig(file, format=ending)
    return file.getvalue()


def label_table(counts: np.ndarray, title: str) -> "Table":
    """The same numbers as a table for the terminal."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    totals = [str(total) for total in (*counts.sum(axis=0), counts.sum())]
    for heading in ("worker", *map(str, range(counts.shape[1])), "all"):
        table.add_column(heading, justify="right", no_wrap=True)
    for worker, row in enumerate(counts):
        cells = [str(count) if count else "·" for count in row]
        table.add_row(str(worker), *cells, str(row.sum()))
    table.add_section()
    table.add_row("all", *totals, style="bold")
    return table


def _shade(label: int, classes: int) -> float | int:
    """A place in the colour map: one of ten colours, or a shade of a continuous one."""
    return label if classes <= 10 else label / (classes - 1)


def _legend_sizes(most: int) -> list[int]:
    """Up to three round numbers of points that show what the areas mean.

    >>> _legend_sizes(5842), _legend_sizes(144), _legend_sizes(1)
    ([500, 2000, 5000], [10, 40, 100], [1])
    """
    unit = 10 ** (len(str(most)) - 1)
    top = max(step for step in (1, 2, 5) if step * unit <= most) * unit
    return sorted({size for size in (top // 10, top * 2 // 5, top) if size})
