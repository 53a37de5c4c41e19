"""What all figures share: their formats, accuracies in per cent, chance, legends that fit."""

import itertools
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

FORMATS = ("png", "pdf", "svg")
DPI = 140
# Told apart by eyes that see no red or green, too.
COLOURS = {"arc": "#0072B2", "none": "0.45", "static": "#D55E00"}


def pictures(path: Path) -> list[Path]:
    """The files of a figure whose PNG is ``path``."""
    return [path.with_suffix(f".{ending}") for ending in FORMATS]


def save(figure: "Figure", path: Path, mark: str = "", formats: Sequence[str] = FORMATS) -> None:
    """Write a figure as a PNG, which carries its mark, and beside it as PDF and SVG.

    The same figure makes the same bytes. A file has its name when it is complete.
    """
    from matplotlib import rc_context

    path.parent.mkdir(parents=True, exist_ok=True)
    extra: dict[str, dict[str, Any]] = {
        "png": {"Source": mark} if mark else {},
        "pdf": {"CreationDate": None},
        "svg": {"Date": None},
    }
    for ending in reversed(formats):  # the PNG last: its mark says that all are there
        place = path.with_suffix(f".{ending}")
        partly = place.with_name(f"{place.name}.{os.getpid()}.part")  # others may draw it, too
        with rc_context({"svg.hashsalt": "lit_byz"}):
            figure.savefig(partly, dpi=DPI, format=ending, metadata=extra[ending])
        partly.replace(place)


def in_percent(axis: "Axis") -> None:
    """Write an axis of fractions in per cent; the unit stands in its label."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, symbol=""))


@lru_cache(maxsize=64)
def chance_of(dataset: str) -> float | None:
    """The accuracy of guessing one of a data set's classes; None where they are not known."""
    from lit_byz.config.components import component
    from lit_byz.errors import BadRequest

    try:
        return 1 / int(getattr(component("dataset", dataset), "classes", 0))
    except (BadRequest, TypeError, ValueError, ZeroDivisionError):
        return None  # a user's class that is not here any more


def draw_chance(axes: "Axes", chance: float | None, *, vertical: bool = False) -> None:
    """A thin line where guessing is."""
    if chance is None:
        return
    line = axes.axvline if vertical else axes.axhline
    line(chance, color="0.35", linewidth=0.8, linestyle=(0, (1, 2)), label="chance", zorder=1)


def columns_of(names: Sequence[str], inches: float) -> int:
    """The most columns in which a legend is no wider than its figure, at most five.

    >>> columns_of(["ARC", "no clipping"], 8.0), columns_of(["a rather long name"] * 4, 4.0)
    (2, 2)
    """
    # Of a letter, and of the sign and the gaps beside a name, at the legend's size.
    letter, sign = 0.067, 0.53
    for columns in range(min(len(names), 5), 1, -1):
        rows, more = divmod(len(names), columns)
        ends = [column * rows + min(column, more) for column in range(columns + 1)]
        parts = [names[start:end] for start, end in itertools.pairwise(ends)]
        if sum(sign + letter * _longest(part) for part in parts) < inches:
            return -(-len(names) // -(-len(names) // columns))  # rows of one length
    return 1


def _longest(names: Sequence[str]) -> int:
    return max(len(line) for name in names for line in name.split("\n"))


def legend_below(figure: "Figure", axes: "Sequence[Axes]") -> None:
    """One legend for all panels, below them, each name once."""
    entries: dict[str, Any] = {}
    for each in axes:
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if "chance" in entries:
        entries["chance"] = entries.pop("chance")  # last
    if entries:
        columns = columns_of(list(entries), float(figure.get_size_inches()[0]))
        handles, names = list(entries.values()), list(entries)
        figure.legend(handles, names, loc="outside lower center", ncols=columns, fontsize=8)
