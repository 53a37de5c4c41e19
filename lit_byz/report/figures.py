"""Pictures of runs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[int, float]]


def run_figures(history: Mapping[str, Points], title: str, folder: Path) -> list[Path]:
    """Accuracy over the steps, C_t against ‖m̄‖ with the damage, and the damage's limits.

    What a run did not record is not drawn; returns the paths of the PNGs.
    """
    made = []
    if history.get("test/accuracy"):
        made.append(_draw(folder / "accuracy.png", title, lambda axes: _accuracy(axes, history)))
    if history.get("honest/mean_norm"):
        made.append(_draw(folder / "norms.png", title, lambda axes: _norms(axes, history)))
    if history.get("attack/bound") or history.get("attack/strongest_damage"):
        made.append(_draw(folder / "damage.png", title, lambda axes: _damages(axes, history)))
    return made


def _draw(path: Path, title: str, fill: Callable[["Axes"], None]) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    fill(axes)
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    return path


def _accuracy(axes: "Axes", history: Mapping[str, Points]) -> None:
    steps, values = zip(*history["test/accuracy"], strict=True)
    axes.plot(steps, values, color="tab:blue")
    best = max(values)
    axes.axhline(best, color="tab:blue", linestyle=":", linewidth=1)
    axes.annotate(f"maximum {best:.3f}", (steps[-1], best), ha="right", va="bottom", fontsize=8)
    axes.set(xlabel="step", ylabel="test accuracy", ylim=(0, 1.05))


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
        ("arc/threshold", "threshold $C_t$", "tab:red"),
        ("honest/mean_norm", r"honest mean $\|\bar m_t\|$", "tab:blue"),
        ("honest/max_norm", "longest honest momentum", "tab:gray"),
        ("attack/damage", r"damage $\|R_t - \bar m_t\|$", "tab:orange"),
    )
    _lines(axes, history, lines)


def _lines(
    axes: "Axes", history: Mapping[str, Points], lines: Sequence[tuple[str, str, str]]
) -> None:
    """Metrics with their labels and colours, over the steps; what is missing is left out."""
    for key, label, colour in lines:
        if history.get(key):
            steps, values = zip(*history[key], strict=True)
            axes.plot(steps, values, label=label, color=colour, linewidth=1)
    axes.set(xlabel="step", yscale="log")
    axes.legend(fontsize=8)
