"""How methods look in every figure: the colour is the rule's, the line says how one clips."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz.report.drawing import chance_of, columns_of
from lit_byz.report.paper.survey import Cell, Survey
from lit_byz.report.paper.words import STRENGTHS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by eyes that see no red or green, too.
RULES = {"cwtm": "#0072B2", "gm": "#D55E00", "cwmed": "#009E73", "multi_krum": "#CC79A7"}
BASELINE = "0.25"
ARC, NONE = "#0072B2", "0.6"
STATIC = ("#FDE0C5", "#F8B58B", "#EB7F52", "#C8403F", "#8E1B37")
DPI = 150


def line_of(cell: Cell, found: Survey) -> dict[str, Any]:
    """Colour, dashes and marker of a method's line."""
    if cell.baseline:
        return {"color": BASELINE, "linestyle": ":", "linewidth": 1.4}
    plain = cell.example.plain
    several = len({c.example.plain["rule"]["name"] for c in found.methods}) > 1
    clip = plain["clip"]["name"]
    colour = RULES.get(plain["rule"]["name"], "black") if several else bar_of(cell, found)
    dashes = {"arc": "-", "none": "--"}.get(clip, "-.")
    marker = {"arc": "o", "none": "s"}.get(clip, "^")
    fill = colour if clip == "arc" else "white"
    return {"color": colour, "linestyle": dashes, "marker": marker, "markerfacecolor": fill}


def bar_of(cell: Cell, found: Survey) -> str:
    """The colour of a way of clipping where there is one rule."""
    plain = cell.example.plain
    clip = plain["clip"]
    if clip["name"] != "static":
        return {"arc": ARC, "none": NONE}.get(clip["name"], "black")
    thresholds = sorted(
        {
            float(c.example.plain["clip"]["C"])
            for c in found.methods
            if c.example.plain["clip"]["name"] == "static"
        }
    )
    place = thresholds.index(float(clip["C"]))
    # A few thresholds take the strong end of the scale: the pale one is hard to see.
    return STATIC[(place + max(0, len(STATIC) - max(2, len(thresholds)))) % len(STATIC)]


def canvas(
    panels: int, columns: int, width: float = 4.2, height: float = 3.0
) -> "tuple[Figure, Sequence[Axes]]":
    """A figure of so many panels, in rows of at most ``columns``."""
    from matplotlib.figure import Figure

    columns = max(1, min(columns, panels))
    rows = -(-panels // columns)
    figure = Figure(figsize=(width * columns, height * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for unused in axes[panels:]:
        unused.remove()
    return figure, list(axes[:panels])


def chance_in(cells: Sequence[Cell]) -> float | None:
    """The accuracy of guessing on the data set of these cells."""
    return chance_of(str(cells[0].example.plain["dataset"]["name"])) if cells else None


def panel_title(title: str, strength: str | None) -> str:
    """The name of a panel, and how hard its attackers search."""
    return "\n".join(part for part in (title, STRENGTHS.get(strength or "", "")) if part)


def say_empty(axes: "Axes", what: str = "no runs yet") -> None:
    """A word in a panel that has nothing to show."""
    axes.text(*(0.5, 0.5, what), transform=axes.transAxes, ha="center", va="center", color="0.5")


def finish(figure: "Figure", found: Survey, axes: Sequence["Axes"]) -> None:
    """Title, what is missing, and one legend for all panels."""
    experiment = found.experiment
    title = f"{experiment.place}. {experiment.shows}"
    notes = "; ".join(part for part in (found.partial, found.left_out(), _drawn(found)) if part)
    figure.suptitle(f"{_wrapped(title, figure)}\n{_wrapped(notes, figure)}", fontsize=9)
    entries: dict[str, Any] = {}
    for each in axes:
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    methods = list(dict.fromkeys(found.method(cell) for cell in found.methods))
    names = [name for name in methods if name in entries]
    # What the signs mean comes last.
    others = [name for name in entries if name not in methods]
    names += sorted(others, key=lambda name: not name.startswith("DSGD"))
    if names:
        figure.legend(
            [entries[name] for name in names],
            names,
            loc="outside lower center",
            ncols=columns_of(names, figure.get_size_inches()[0]),
            fontsize=8,
        )


def _drawn(found: Survey) -> str:
    """What a point of the figure is, in words."""
    kind = found.experiment.kind
    if kind == "thresholds":
        return "one seed in each panel"
    if kind == "gain":
        return "in %: without clipping → with ARC; grey: no complete seed"
    begun, planned = found.seeds
    if begun <= 1:
        return "" if found.partial else "one seed"
    seeds = f"{planned}" if begun == planned and not found.partial else f"up to {begun}"
    return f"mean of {seeds} seeds ± one standard deviation"


def _wrapped(text: str, figure: "Figure") -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, max(40, int(figure.get_size_inches()[0] * 13))))


def save(figure: "Figure", folder: Path, name: str, formats: Sequence[str]) -> list[Path]:
    """Write a figure in every format that is wanted; the same figure makes the same bytes."""
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for ending in formats:
        path = folder / f"{name}.{ending}"
        # Without dates: files in a repository change when the picture does.
        metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(ending)
        with rc_context({"svg.hashsalt": "lit_byz"}):
            figure.savefig(path, dpi=DPI, metadata=metadata)
        paths.append(path)
    return paths
