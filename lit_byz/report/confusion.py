"""Whose class was lost: accuracy by class, and the confusion matrix as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lit_byz.report.drawing import in_percent, save
from lit_byz.report.rendering import as_csv

if TYPE_CHECKING:
    from rich.table import Table


def recalls(counts: np.ndarray) -> np.ndarray:
    """The share of each class's images that is found; NaN for a class without images."""
    totals = counts.sum(1)
    return np.divide(counts.diagonal(), totals, out=np.full(len(counts), np.nan), where=totals > 0)


def table(counts: np.ndarray, title: str) -> "Table":
    """For a terminal: a row for each class."""
    from rich.table import Table

    made = Table(title=title, title_justify="left")
    for heading in ("class", "images", "found, %", "mostly taken for"):
        made.add_column(heading, justify="right")
    for label, (row, found) in enumerate(zip(counts, recalls(counts), strict=True)):
        others = row.copy()
        others[label] = 0
        most = int(others.argmax())
        mistaken = f"{most} ({others[most]})" if others[most] else ""
        shown = "" if np.isnan(found) else f"{100 * found:.1f}"
        made.add_row(str(label), str(row.sum()), shown, mistaken)
    return made


def csv_of(counts: np.ndarray) -> str:
    """A line for each class, a column for each class that its images were taken for."""
    classes = [str(label) for label in range(len(counts))]
    rows: list[Sequence[object]] = [
        [label, *row.tolist()] for label, row in zip(classes, counts, strict=True)
    ]
    return as_csv(["label", *(f"taken for {label}" for label in classes)], rows)


def figure(counts: np.ndarray, title: str, path: Path) -> None:
    """Rows are the images' classes, columns what they were taken for, shares of a row in colour."""
    from matplotlib.figure import Figure

    totals = counts.sum(1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    size = 2.2 + 0.38 * len(counts)
    drawn = Figure(figsize=(size + 0.9, size), layout="constrained")
    axes = drawn.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for row, column in zip(*np.nonzero(shares >= 0.005), strict=True):
        share = shares[row, column]
        colour = "white" if share > 0.5 else "black"
        text = f"{100 * share:.0f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
    axes.set(xticks=range(len(counts)), yticks=range(len(counts)))
    axes.set(xlabel="taken for class", ylabel="class")
    axes.set_title(title, fontsize=9)
    bar = drawn.colorbar(image, ax=axes, shrink=0.8, label="share of the class's images in %")
    in_percent(bar.ax.yaxis)
    save(drawn, path)
