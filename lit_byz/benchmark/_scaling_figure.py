"""The scaling figure: time against n, d and the number of factors, and peak memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz.benchmark._memory import MemoryPoint

if TYPE_CHECKING:
    from lit_byz.benchmark.scaling import Row, Slope

COLOURS = {
    "arc": "tab:blue",
    "nnm": "tab:orange",
    "cwtm∘nnm∘arc": "tab:red",
    "gm∘nnm∘arc": "tab:green",
}
KINDS = {
    "server": ("one aggregation", "tab:blue", "o"),
    "foe": ("FOE searched, then served", "tab:orange", "s"),
    "training": ("whole training steps", "tab:red", "^"),
}
LABELS = {"n": "number of workers n", "d": "model size d", "factors": "number of factors"}
FORMATS = ("png", "pdf", "svg")


def draw(
    rows: "Sequence[Row]", slopes: "Sequence[Slope]", memory: Sequence[MemoryPoint], path: Path
) -> list[Path]:
    """A panel for each thing that was varied; the files ``path`` with the endings of FORMATS."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    panels = list(dict.fromkeys(row.panel for row in rows)) + ["memory"] * bool(memory)
    if not panels:
        return []
    figure = Figure(figsize=(5.2 * min(2, len(panels)), 4.0 * ((len(panels) + 1) // 2)))
    figure.set_layout_engine("constrained")
    shape = ((len(panels) + 1) // 2, min(2, len(panels)))
    axes = figure.subplots(*shape, squeeze=False).flatten()
    for axis, panel in zip(axes, panels, strict=False):
        if panel == "memory":
            _memory(axis, memory)
        else:
            _times(axis, panel, rows, slopes)
        axis.grid(alpha=0.3, which="both", linewidth=0.5)
        axis.xaxis.set_minor_formatter(NullFormatter())  # its labels would meet
    for axis in axes[len(panels) :]:
        axis.remove()
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_suffix(f".{ending}") for ending in FORMATS]
    for file in files:
        # No date: the same numbers give the same file.
        metadata = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
        figure.savefig(file, dpi=150, metadata=metadata[file.suffix[1:]])
    return files


def _times(axis: Any, panel: str, rows: "Sequence[Row]", slopes: "Sequence[Slope]") -> None:
    own = [row for row in rows if row.panel == panel]
    for what in dict.fromkeys(row.what for row in own):
        drawn = [row for row in own if row.what == what]
        sizes, times = [row.size for row in drawn], [1e3 * row.seconds for row in drawn]
        fitted = next((s for s in slopes if (s.panel, s.what) == (panel, what)), None)
        label = what
        if fitted is not None:
            label += f": slope {fitted.measured:.2f}, theory {fitted.theory:g}"
            # Theory's slope through the last point, over the sizes that the fit has seen.
            larger = sizes[len(sizes) // 2 :]
            theory = [times[-1] * (size / sizes[-1]) ** fitted.theory for size in larger]
            axis.plot(larger, theory, ":", color=COLOURS[what], linewidth=1.5)
        axis.plot(sizes, times, "-o", color=COLOURS[what], markersize=3.5, label=label)
    one = own[0]
    fixed = [f"n = {one.n}", f"f = {one.f}"] if panel != "n" else ["f = n/10"]
    fixed += [f"d = {one.d:,}"] if panel != "d" else []
    axis.set(xscale="log", yscale="log", xlabel=LABELS[panel], ylabel="time [ms]")
    axis.set_title(", ".join(fixed), fontsize="medium")
    axis.legend(fontsize="small")


def _memory(axis: Any, memory: Sequence[MemoryPoint]) -> None:
    sizes = sorted({point.n * point.d for point in memory})
    for kind, (label, colour, marker) in KINDS.items():
        own = sorted((p for p in memory if p.kind == kind), key=lambda p: p.n * p.d)
        if own:
            x = [p.n * p.d for p in own]
            axis.plot(
                x,
                [p.beyond / 1e6 for p in own],
                linestyle="-",
                marker=marker,
                color=colour,
                markersize=4,
                label=label,
            )
    for times, style in ((1, "-"), (4, "--")):
        name = "the n × d matrix" if times == 1 else f"{times} × the matrix"
        bound = [times * 4 * size / 1e6 for size in sizes]
        axis.plot(sizes, bound, style, color="0.5", linewidth=1, label=name)
    axis.set(xscale="log", yscale="log", xlabel="n · d", ylabel="peak beyond the base [MB]")
    axis.set_title("peak memory of a process", fontsize="medium")
    axis.legend(fontsize="small")
