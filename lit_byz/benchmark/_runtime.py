"""The paper's runtime figure: ARC against NNM, over the model's size and the number of workers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lit_byz._streams import Stream, torch_generator
from lit_byz.benchmark._byzfl import mixing_bytes
from lit_byz.benchmark._timing import free_memory, take_turns
from lit_byz.robust import ARC, NNM

F = 3
WORKERS = 30
PARAMETERS = 1_310_922  # the paper's CIFAR-10 model
MODEL_SIZES = [10_000, 30_000, 100_000, 300_000, PARAMETERS]
WORKER_COUNTS = [10, 20, 30, 40]
QUICK_MODEL_SIZES = [10_000, 30_000, 100_000]
QUICK_WORKER_COUNTS = [10, 20]
LINES = {
    "byzfl_nnm": ("NNM, ByzFL", "tab:orange", "--"),
    "byzfl_arc": ("ARC, ByzFL", "tab:blue", "--"),
    "ours_nnm": ("NNM, ours", "tab:orange", "-"),
    "ours_arc": ("ARC, ours", "tab:blue", "-"),
}


@dataclass(frozen=True)
class RuntimePoint:
    """Seconds that each clip or mix takes on its own; None: not enough memory to find out."""

    n: int
    d: int
    panel: str
    ours_arc: float
    ours_nnm: float
    byzfl_arc: float
    byzfl_nnm: float | None


def runtime_sizes(*, quick: bool) -> list[tuple[int, int, str]]:
    """(n, d, panel) of every point: panel ``d`` varies the model, panel ``n`` the workers."""
    sizes = QUICK_MODEL_SIZES if quick else MODEL_SIZES
    counts = QUICK_WORKER_COUNTS if quick else WORKER_COUNTS
    d = sizes[-1]
    return [(WORKERS, size, "d") for size in sizes] + [(count, d, "n") for count in counts]


def measure_runtime(
    byzfl: Any, n: int, d: int, panel: str, *, repeats: int, budget: float
) -> RuntimePoint:
    x = torch.randn(n, d, generator=torch_generator(d, Stream.BENCHMARKS))
    functions = {"ours_arc": ARC(F), "ours_nnm": NNM(F), "byzfl_arc": byzfl.ARC(f=F)}
    # Others may need memory too: half of it is left alone.
    if mixing_bytes(n, F, d) < free_memory() / 2:
        functions["byzfl_nnm"] = byzfl.NNM(f=F)
    timings = take_turns(functions, x, repeats=repeats, budget=budget)
    return RuntimePoint(
        n,
        d,
        panel,
        timings.median("ours_arc"),
        timings.median("ours_nnm"),
        timings.median("byzfl_arc"),
        timings.median("byzfl_nnm") if "byzfl_nnm" in functions else None,
    )


def draw_runtime(points: list[RuntimePoint], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    axes = figure.subplots(1, 2)
    for axis, panel, label in zip(
        axes, ("d", "n"), ("model size d", "number of workers n"), strict=True
    ):
        chosen = [point for point in points if point.panel == panel]
        for field, (name, colour, style) in LINES.items():
            drawn = [point for point in chosen if getattr(point, field) is not None]
            axis.plot(
                [getattr(point, panel) for point in drawn],
                [getattr(point, field) for point in drawn],
                style,
                color=colour,
                marker="o",
                markersize=3,
                label=name,
            )
        axis.set(xlabel=label, yscale="log", xscale="log" if panel == "d" else "linear")
        axis.grid(alpha=0.3, which="both")
    largest = max(point.d for point in points)
    axes[0].set(ylabel="runtime [s]", title=f"n = {WORKERS}, f = {F}")
    axes[1].set(title=f"d = {largest:,}, f = {F}")
    axes[1].legend(fontsize="small")
    figure.savefig(path, dpi=150)
