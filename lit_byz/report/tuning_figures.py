"""The pictures of a tuning study."""

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz.report.drawing import draw_chance, in_percent, legend_below, save
from lit_byz.report.tuned import TrialResult, Tuned, percent, shown
from lit_byz.report.words import SYMBOLS, cell_words, told_apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"arc": "tab:green", "none": "tab:red"}
Place = Callable[[TrialResult], float]


def history_figure(study: Tuned, path: Path) -> None:
    """Each trial's value in the order of the trials, and the best so far."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    drawn = Figure(figsize=(6.4, 4), layout="constrained")
    axes = drawn.subplots()
    _points(axes, study, lambda trial: trial.number)
    best, steps = 0.0, []
    for trial in study.trials:
        if trial.state == "complete" and trial.value is not None:
            best = max(best, trial.value)
        if best > 0:
            steps.append((trial.number, best))
    if steps:
        x, y = zip(*steps, strict=True)
        axes.step(
            x, y, where="post", color="tab:blue", linewidth=1.2, label=f"{study.called} so far"
        )
    _lines(axes, study)
    axes.set(xlabel="number of the trial")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _finish(drawn, axes, study, path)


def curve_figure(study: Tuned, path: Path) -> None:
    """Worst case against each tuned key, with the comparisons as horizontal lines."""
    from matplotlib.figure import Figure

    keys = study.keys
    drawn = Figure(figsize=(1.6 + 4.8 * len(keys), 4), layout="constrained")
    panels = drawn.subplots(1, len(keys), sharey=True, squeeze=False)[0]
    for key, axes in zip(keys, panels, strict=True):
        _panel(axes, study, key)
    _finish(drawn, panels[0], study, path, panels[1:])


def _panel(axes: "Axes", study: Tuned, key: str) -> None:
    values = [trial.params[key] for trial in study.trials]
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    places = {shown(value): place for place, value in enumerate(dict.fromkeys(values))}

    def place(trial: TrialResult) -> float:
        return float(trial.params[key]) if numeric else places[shown(trial.params[key])]

    if numeric and len(study.keys) == 1:  # with several keys neighbours differ in the others
        _curve(axes, study, place)
    _points(axes, study, place)
    _lines(axes, study)
    if key in study.log:
        axes.set_xscale("log")
    if not numeric:
        axes.set_xticks(range(len(places)), list(places))
    name = SYMBOLS.get(key, key)
    name = f"threshold {name} of static clipping" if key == "clip.C" else name
    axes.set(xlabel=f"{name} (log scale)" if key in study.log else name)


def _curve(axes: "Axes", study: Tuned, place: Place) -> None:
    """A line that no trial contradicts: through pruned and failed ones, which it cannot lie above.

    Dashed where an end is a bound, as the curve is at most there.
    """
    ended = ("complete", "pruned", "failed")
    found = [t for t in study.trials if t.at_most is not None and t.state in ended]
    # Where one value was tried several times, what is known best: the lowest bound, or the result.
    by_place: dict[float, TrialResult] = {}
    for trial in sorted(found, key=lambda t: (t.state != "complete", t.at_most or 0.0)):
        by_place.setdefault(place(trial), trial)
    for (x, one), (next_x, other) in itertools.pairwise(sorted(by_place.items())):
        exact = one.state == other.state == "complete"
        style, alpha = ("-", 1.0) if exact else ("--", 0.55)
        y = (one.at_most or 0.0, other.at_most or 0.0)
        axes.plot((x, next_x), y, style, color="tab:blue", linewidth=1.2, alpha=alpha, zorder=2)


def _points(axes: "Axes", study: Tuned, place: Place) -> None:
    """A dot for each complete trial, an open triangle for what another is at most."""
    for state, marker, colour, label in (
        ("complete", "o", "tab:blue", "worst case of a trial"),
        ("pruned", "v", "white", "pruned: at most this"),
        ("failed", "v", "tab:red", "runs failed: at most this"),
    ):
        found = [t for t in study.trials if t.state == state and t.at_most is not None]
        if found:
            x, y = zip(*((place(t), float(t.at_most or 0.0)) for t in found), strict=True)
            axes.scatter(
                x, y, marker=marker, s=34, c=colour, edgecolors="tab:blue", label=label, zorder=3
            )
            if state != "complete":  # its worst case lies somewhere below
                axes.vlines(x, 0, y, color="tab:blue", alpha=0.15, linewidth=1.2, zorder=1)
    best = study.highest
    if best is not None and best.value is not None:
        label = f"{study.called}: {best.in_words}, {100 * best.value:.1f} %"
        if study.could_be_better:
            label += f"\n{study.reservations(1)}"
        at = [place(best)], [best.value]
        axes.scatter(*at, marker="*", s=190, c="gold", edgecolors="black", label=label, zorder=4)


def _lines(axes: "Axes", study: Tuned) -> None:
    names = told_apart([comparison.name for comparison in study.comparisons], cell_words)
    for number, (words, comparison) in enumerate(zip(names, study.comparisons, strict=True)):
        worst = comparison.cell.worst_case
        if not worst.known:
            continue
        short = comparison.name.split("=")[-1]
        label = f"{words}: {percent(worst)}"
        colour = COLOURS.get(short, f"C{number + 3}")
        style = ":" if not worst.exact else "-" if number % 2 else "--"
        axes.axhline(worst.mean, color=colour, linestyle=style, linewidth=1.4, label=label)


def _finish(
    drawn: Any, axes: "Axes", study: Tuned, path: Path, others: "Sequence[Axes]" = ()
) -> None:
    values = [t.at_most for t in study.trials if t.at_most is not None]
    values += [c.cell.worst_case.mean for c in study.comparisons if c.cell.worst_case.known]
    top = max(values, default=1.0)
    in_percent(axes.yaxis)
    axes.set_ylabel(f"worst-case maximal {study.images} accuracy in %", fontsize=9)
    axes.set_ylim(0, min(1.05, math.ceil(10 * top + 0.5) / 10))
    for each in (axes, *others):
        draw_chance(each, study.chance)
        each.grid(alpha=0.3)
    drawn.suptitle(study.title, fontsize=9)
    legend_below(drawn, [axes])
    save(drawn, path)
