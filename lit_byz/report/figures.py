"""Pictures of runs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lit_byz.report.drawing import draw_chance, in_percent, save
from lit_byz.report.words import STEPS
from lit_byz.tracking.evaluations import INITIAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[int, float]]
# Of the axes in their figure: left, bottom, width, top; and how high a line of the title is.
LEFT, BOTTOM, WIDTH, TOP, LINE = 0.115, 0.135, 0.865, 0.97, 0.045


def run_figures(
    history: Mapping[str, Points], title: str, folder: Path, chance: float | None = None
) -> list[Path]:
    """Accuracy over the steps, C_t against ‖m̄‖ with the damage, and the damage's limits.

    What a run did not record is not drawn; returns the paths of the PNGs. Steps are counted as in
    all that people read: after the first step 1, and 0 are the initial parameters. MLflow's steps
    start at 0, for the first one.
    """
    made = []
    if history.get("test/accuracy"):
        made.append(
            _draw(folder / "accuracy.png", title, lambda axes: _accuracy(axes, history, chance))
        )
    if history.get("honest/mean_norm"):
        made.append(_draw(folder / "norms.png", title, lambda axes: _norms(axes, history)))
    if history.get("attack/bound") or history.get("attack/strongest_damage"):
        made.append(_draw(folder / "damage.png", title, lambda axes: _damages(axes, history)))
    return made


def _draw(path: Path, title: str, fill: Callable[["Axes"], None]) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6))
    # Places that are given need no search, which takes as long as drawing: every run has three.
    height = TOP - BOTTOM - LINE * len(title.splitlines())
    axes = figure.add_axes((LEFT, BOTTOM, WIDTH, height))
    fill(axes)
    axes.set_title(title, fontsize=9, y=1.0)
    axes.grid(alpha=0.3)
    axes.set_xlim(left=0)
    save(figure, path, formats=("png",))
    return path


def after_steps(points: Points) -> tuple[list[int], list[float]]:
    """How many steps had been done, and the values then."""
    return [step + 1 for step, _ in points], [value for _, value in points]


def accuracy_curve(history: Mapping[str, Points]) -> tuple[list[int], list[float]]:
    """The test accuracy over the steps, from the initial parameters on if it was measured then."""
    steps, values = after_steps(history["test/accuracy"])
    initial = [value for _, value in history.get(INITIAL, ())][:1]
    return [0] * len(initial) + steps, initial + values


def _accuracy(axes: "Axes", history: Mapping[str, Points], chance: float | None) -> None:
    steps, values = accuracy_curve(history)
    axes.plot(steps, values, color="tab:blue", marker="." if len(steps) < 60 else None)
    reached = after_steps(history["test/accuracy"])
    best = max(reached[1])
    where = reached[0][reached[1].index(best)]
    axes.axhline(best, color="tab:blue", linestyle=":", linewidth=1)
    axes.annotate(
        f"maximum {100 * best:.1f} % after step {where}",
        (0.99, best),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        fontsize=8,
    )
    draw_chance(axes, chance)
    if chance is not None:
        axes.annotate(
            "chance",
            (0.99, chance),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            fontsize=8,
            color="0.35",
        )
    in_percent(axes.yaxis)
    axes.set(xlabel=STEPS, ylabel="test accuracy in %", ylim=(0, 1.05))


def _damages(axes: "Axes", history: Mapping[str, Points]) -> None:
    lines = (
        ("attack/bound", "the most that theory allows", "tab:gray"),
        ("attack/strongest_damage", "the strongest attack found", "tab:red"),
        ("attack/damage", r"this attack's damage $\|R_t - \bar m_t\|$", "tab:orange"),
    )
    _lines(axes, history, lines)
    axes.set_ylabel("distance from the honest mean")


def _norms(axes: "Axes", history: Mapping[str, Points]) -> None:
    lines = (
        ("clip/threshold", "threshold $C_t$", "tab:red"),
        ("honest/mean_norm", r"honest mean $\|\bar m_t\|$", "tab:blue"),
        ("honest/max_norm", "longest honest momentum", "tab:gray"),
        ("attack/damage", r"damage $\|R_t - \bar m_t\|$", "tab:orange"),
    )
    _lines(axes, history, lines)
    axes.set_ylabel("Euclidean norm")


def _lines(
    axes: "Axes", history: Mapping[str, Points], lines: Sequence[tuple[str, str, str]]
) -> None:
    """Metrics with their labels and colours, over the steps; what is missing is left out."""
    for key, label, colour in lines:
        if history.get(key):
            axes.plot(*after_steps(history[key]), label=label, color=colour, linewidth=1)
    axes.set(xlabel=STEPS, yscale="log")
    axes.legend(fontsize=8)
