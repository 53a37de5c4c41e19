"""Worst-case maximal accuracy: lines against x, bars by method, and ARC's gain as a heat map."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lit_byz.report.paper.style import (
    ARC,
    BASELINE,
    bar_of,
    canvas,
    finish,
    line_of,
    panel_title,
)
from lit_byz.report.paper.survey import Cell, Survey, grouped
from lit_byz.report.paper.words import AXES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(found: Survey) -> "Figure":
    """The figure of an experiment of worst cases: a column for each strength of the attacks."""
    panels = [
        (title, cells, strength)
        for title, cells in found.panels().items()
        for strength in found.strengths
    ]
    bars = found.experiment.form == "bars"
    figure, axes = canvas(len(panels), len(found.strengths), width=5.2 if bars else 4.2)
    for place, (title, cells, strength) in zip(axes, panels, strict=True):
        (_bars if bars else _lines)(place, found, cells, strength)
        place.set_title(panel_title(title, strength), fontsize=8)
        place.set_ylim(0, 1.02)
        place.grid(axis="y", alpha=0.3)
        place.set_xlabel(AXES.get(found.experiment.x, found.experiment.x), fontsize=8)
        place.set_ylabel("worst-case maximal accuracy", fontsize=8)
        place.tick_params(labelsize=8)
    finish(figure, found, axes)
    return figure


def places_of(found: Survey) -> list[str]:
    """The values of x in the order of the experiment."""
    return list(dict.fromkeys(cell.word(found.experiment.x) for cell in found.methods))


def _lines(axes: "Axes", found: Survey, cells: Sequence[Cell], strength: str | None) -> None:
    places = places_of(found)
    by_method = {found.method(cell): cell for cell in cells}
    for name, example in by_method.items():
        members = [cell for cell in cells if found.method(cell) == name]
        known = [(places.index(c.word(found.experiment.x)), c.at(strength)) for c in members]
        known = [(x, worst) for x, worst in known if worst.bounds]
        style = line_of(example, found)
        axes.errorbar(
            [x for x, _ in known],
            [worst.mean for _, worst in known],
            yerr=[worst.std for _, worst in known] if any(w.seeds > 1 for _, w in known) else None,
            capsize=2,
            markersize=5,
            label=name,
            **style,
        )
        for x, worst in known:
            if not worst.exact:
                _mark_bound(axes, x, worst.mean, worst.kind, style["color"])
    _baseline(axes, found, cells, places)
    axes.set_xticks(range(len(places)), [_bare(place) for place in places])
    axes.set_xlim(-0.3, len(places) - 0.7)


def _bare(place: str) -> str:
    """``f = 3`` as the axis writes it."""
    return place.removeprefix("f = ").removeprefix("μ = ")


def _mark_bound(axes: "Axes", x: float, y: float, kind: str, colour: str) -> None:
    """An arrow in the direction where the value may lie: attacks are missing or were stopped."""
    down = kind == "at most"
    axes.annotate(
        "",
        (x, y - 0.09 if down else y + 0.09),
        (x, y),
        arrowprops={"arrowstyle": "->", "color": colour},
    )


def _baseline(axes: "Axes", found: Survey, cells: Sequence[Cell], places: Sequence[str]) -> None:
    values = {}
    for cell in cells:
        baseline = found.baseline_of(cell)
        worst = None if baseline is None else baseline.at(None)
        if worst is not None and worst.bounds:
            values[places.index(cell.word(found.experiment.x))] = worst.mean
    if values:
        xs = sorted(values)
        axes.plot(xs, [values[x] for x in xs], ":.", color=BASELINE, label="DSGD, f = 0")


def _bars(axes: "Axes", found: Survey, cells: Sequence[Cell], strength: str | None) -> None:
    places = places_of(found)
    methods = list(dict.fromkeys(found.method(cell) for cell in cells))
    width = 0.84 / len(methods)
    for cell in cells:
        worst = cell.at(strength)
        if not worst.bounds:
            continue
        place = methods.index(found.method(cell))
        x = places.index(cell.word(found.experiment.x)) + (place - (len(methods) - 1) / 2) * width
        axes.bar(
            x,
            worst.mean,
            width,
            yerr=worst.std if worst.seeds > 1 else None,
            color=bar_of(cell, found),
            hatch="" if worst.exact else "//",
            edgecolor="white",
            label=found.method(cell),
            error_kw={"elinewidth": 0.8},
        )
        if not worst.exact:
            _mark_bound(axes, x, worst.mean, worst.kind, "black")
    _baseline(axes, found, cells, places)
    axes.set_xticks(range(len(places)), places)


def draw_gain(found: Survey) -> "Figure":
    """What ARC adds to the worst case: a heat map of x against y for each panel and strength."""
    panels = [
        (title, cells, strength)
        for title, cells in found.panels().items()
        for strength in found.strengths
    ]
    figure, axes = canvas(len(panels), len(found.strengths), width=5.0, height=2.8)
    experiment = found.experiment
    across = list(dict.fromkeys(cell.word(experiment.x) for cell in found.methods))
    along = list(dict.fromkeys(cell.word(experiment.y) for cell in found.methods))
    for place, (title, cells, strength) in zip(axes, panels, strict=True):
        rows = [[float("nan")] * len(across) for _ in along]
        for members in grouped(cells, [experiment.x, experiment.y]).values():
            gain, text = _gain(members, strength)
            x = across.index(members[0].word(experiment.x))
            y = along.index(members[0].word(experiment.y))
            if gain is not None:
                rows[y][x] = gain
                colour = "white" if abs(gain) > 0.55 else "black"
                place.text(x, y, text, ha="center", va="center", fontsize=7, color=colour)
        image = place.imshow(rows, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
        place.set_facecolor("0.92")
        place.set_xticks(range(len(across)), [_bare(word) for word in across], fontsize=8)
        place.set_yticks(range(len(along)), along, fontsize=8)
        place.set_xlabel(AXES[experiment.x], fontsize=8)
        place.set_title(panel_title(title, strength), fontsize=8)
    bar = figure.colorbar(image, ax=list(axes), shrink=0.7)
    bar.set_label("worst case with ARC − without clipping", fontsize=8)
    finish(figure, found, axes)
    return figure


def _gain(members: Sequence[Cell], strength: str | None) -> tuple[float | None, str]:
    """ARC's worst case less that of no clipping, and both in per cent; None unless both exact."""
    found = {cell.example.plain["clip"]["name"]: cell.at(strength) for cell in members}
    arc, none = found.get("arc"), found.get("none")
    if arc is None or none is None or not (arc.bounds and none.bounds):
        return None, ""
    if not (arc.exact and none.exact):
        return None, ""
    return arc.mean - none.mean, f"{100 * none.mean:.0f} → {100 * arc.mean:.0f}"


__all__ = ["ARC", "draw", "draw_gain", "places_of"]
