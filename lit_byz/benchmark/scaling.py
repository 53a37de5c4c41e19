"""How the server's time and memory grow with n, d and the number of factors, beside theory."""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from lit_byz._streams import Stream, torch_generator
from lit_byz.attacks import Scene
from lit_byz.benchmark import _byzfl, _harness
from lit_byz.benchmark._memory import MemoryPoint, measure_memory
from lit_byz.benchmark._progress import Cases
from lit_byz.benchmark._scaling_figure import draw
from lit_byz.benchmark._timing import free_memory, take_turns
from lit_byz.robust import ARC, NNM, Basis

DESCRIPTION = "Draw how the server's time and memory grow with n, d and the number of factors."

PARAMETERS = 431_080  # the paper's MNIST model
PANELS = ("n", "d", "factors", "memory")
# (n, f, d) of the goal: at most so many times the n × d matrix.
GOAL_SIZE, MEMORY_GOAL = (39, 9, PARAMETERS), 4.0
# Theory's exponents: sorting columns takes n log n steps, not counted here.
THEORY = {
    ("n", "arc"): 1,
    ("n", "nnm"): 2,
    ("n", "cwtm∘nnm∘arc"): 2,
    ("n", "gm∘nnm∘arc"): 2,
    ("d", "arc"): 1,
    ("d", "nnm"): 1,
    ("d", "cwtm∘nnm∘arc"): 1,
    ("d", "gm∘nnm∘arc"): 1,
    ("factors", "cwtm∘nnm∘arc"): 1,
    ("factors", "gm∘nnm∘arc"): 1,
}


@dataclass(frozen=True)
class Sizes:
    """What is measured; the fixed numbers of one panel are those of the paper's MNIST runs."""

    n: tuple[int, ...] = (5, 10, 20, 35, 50, 75, 100, 140, 200)
    d: tuple[int, ...] = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
    factors: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    fixed_n: int = 11
    fixed_d: int = PARAMETERS
    memory: tuple[tuple[str, int, int, int], ...] = (
        *(("server", n, n // 10, PARAMETERS) for n in (10, 20, 39, 100, 200)),
        *(("server", 11, 1, d) for d in (100_000, 1_000_000, 10_000_000)),
        *(("foe", n, n // 10, PARAMETERS) for n in (10, 20, 39, 100, 200)),
        *(("training", n, f, PARAMETERS) for n, f in ((11, 1), (20, 2), (39, 9), (80, 8))),
        ("foe", *GOAL_SIZE),
    )


QUICK = Sizes(
    n=(5, 10, 20, 40),
    d=(10_000, 30_000, 100_000, 300_000),
    factors=(1, 4, 16),
    fixed_d=30_000,
    memory=(("server", 10, 1, 100_000), ("training", *GOAL_SIZE)),
)


@dataclass(frozen=True)
class Row:
    """Seconds of one composition at one size, the median."""

    panel: str
    what: str
    n: int
    f: int
    d: int
    factors: int
    seconds: float

    @property
    def size(self) -> int:
        """The one that this panel varies."""
        return int(asdict(self)[self.panel])


@dataclass(frozen=True)
class Slope:
    """The exponent of a size, fitted to the larger half of the sizes, and theory's."""

    panel: str
    what: str
    measured: float
    theory: float


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    _harness.add_options(parser, list(PANELS), quick="small sizes, fewer repeats", repeats=7)
    parser.add_argument("--add", action="store_true", help="keep other panels that the folder has")


def run(parsed: argparse.Namespace) -> int:
    """Measure, write the files and the figure, print the slopes."""
    panels = _harness.chosen(parsed, list(PANELS))
    sizes = QUICK if parsed.quick else Sizes()
    repeats, budget = (3, 1.0) if parsed.quick else (parsed.repeats, 4.0)
    timed = [(p, size) for p in panels if p != "memory" for size in getattr(sizes, p)]
    weighed = sizes.memory if "memory" in panels else ()
    rows, memory = _earlier(parsed.out, panels) if parsed.add else ([], [])

    def write() -> None:
        more = {"slopes": [asdict(s) for s in slopes(rows)], "memory": [asdict(m) for m in memory]}
        _harness.write(parsed.out, "scaling", rows, goals(memory), **more)

    with Cases(len(timed) + len(weighed)) as told:
        for panel, size in timed:
            told.begin(f"{panel} = {size:,}")
            found = _measure(panel, size, sizes, repeats, budget)
            told.end("" if found else "left out: not enough memory is free")
            rows += found
            write()
        for kind, n, f, d in weighed:
            told.begin(f"memory, {kind}, n = {n}, d = {d:,}")
            if _fits(n, d):
                memory.append(measure_memory(kind, n, f, d))
                told.end(f"{memory[-1].over_matrix:.2f} × the matrix")
            else:
                told.end("left out: not enough memory is free")
            write()
    draw(rows, slopes(rows), memory, parsed.out / "scaling")
    _print(_harness.wide_console(), slopes(rows), memory)
    return 0


def _earlier(folder: Path, panels: list[str]) -> tuple[list[Row], list[MemoryPoint]]:
    """What the folder has of the panels that are not measured now."""
    path = folder / "scaling.json"
    if not path.exists():
        return [], []
    content = json.loads(path.read_text())
    rows = [Row(**row) for row in content["rows"] if row["panel"] not in panels]
    memory = content["memory"] if "memory" not in panels else []
    return rows, [MemoryPoint(**point) for point in memory]


def _fits(n: int, d: int) -> bool:
    """Whether a few copies of the matrix fit beside what others may need."""
    return 8 * 4 * n * d < free_memory() / 2


def _measure(panel: str, size: int, sizes: Sizes, repeats: int, budget: float) -> list[Row]:
    n = size if panel == "n" else sizes.fixed_n
    d = size if panel == "d" else sizes.fixed_d
    factors = size if panel == "factors" else 1
    if not _fits(n, d):
        return []
    f = max(1, n // 10)
    x = torch.randn(n, d, generator=torch_generator(n, Stream.BENCHMARKS)).add_(0.1)
    functions: Mapping[str, Callable[[torch.Tensor], object]]
    if panel == "factors":
        rules = ("cwtm", "gm")
        functions = {f"{rule}∘nnm∘arc": _judging(rule, x, f, factors) for rule in rules}
    else:
        servers = {
            f"{rule}∘nnm∘arc": _byzfl.our_server(rule, f, arc=True, nnm=True)
            for rule in ("cwtm", "gm")
        }
        functions = {"arc": ARC(f), "nnm": NNM(f), **servers}
    timings = take_turns(functions, x, repeats=repeats, budget=budget)
    return [Row(panel, what, n, f, d, factors, timings.median(what)) for what in functions]


def _judging(rule: str, x: torch.Tensor, f: int, factors: int) -> Callable[[torch.Tensor], object]:
    """The damages of so many factors of FOE, looked at exactly, as the attackers do."""
    scene = Scene(Basis(x[:-f]), f, _byzfl.our_server(rule, f, arc=True, nnm=True))
    _ = scene.honest.gram
    taus = torch.linspace(0.5, 10, factors, dtype=torch.float64).unsqueeze(1)
    sent = (1 - taus) * scene.mean

    def damages(_: torch.Tensor) -> torch.Tensor:
        return scene.server.damages(scene.facing(scene.honest, sent), scene.mean, 0)

    return damages


def slopes(rows: list[Row]) -> list[Slope]:
    """The exponents on the larger half of each panel's sizes: small ones are all overhead."""
    found = []
    for panel, what in dict.fromkeys((row.panel, row.what) for row in rows):
        own = [row for row in rows if (row.panel, row.what) == (panel, what)]
        larger = own[len(own) // 2 :]
        if len(larger) >= 2:
            sizes, seconds = ([getattr(r, k) for r in larger] for k in ("size", "seconds"))
            slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
            found.append(Slope(panel, what, float(slope), THEORY[panel, what]))
    return found


def goals(memory: list[MemoryPoint]) -> dict[str, bool | str]:
    """What a full run should show."""
    n, _, d = GOAL_SIZE
    return {
        f"{point.kind} at n={n}, d={d:,}: at most {MEMORY_GOAL:g}× the n × d matrix": (
            point.over_matrix <= MEMORY_GOAL
        )
        for point in memory
        if (point.n, point.f, point.d) == GOAL_SIZE
    }


def _print(console: Console, found: list[Slope], memory: list[MemoryPoint]) -> None:
    if found:
        table = Table(title="exponents, measured and in theory")
        for heading in ("time against", "of"):
            table.add_column(heading)
        for heading in ("measured", "theory"):
            table.add_column(heading, justify="right")
        for slope in found:
            table.add_row(slope.panel, slope.what, f"{slope.measured:.2f}", f"{slope.theory:g}")
        console.print(table)
    if memory:
        table = Table(title="peak memory beyond the process's base")
        table.add_column("what")
        for heading in ("n", "d", "base, MB", "beyond, MB", "× the matrix"):
            table.add_column(heading, justify="right")
        for point in memory:
            sizes = (str(point.n), f"{point.d:,}")
            amounts = (f"{point.base / 1e6:.0f}", f"{point.beyond / 1e6:.0f}")
            table.add_row(point.kind, *sizes, *amounts, f"{point.over_matrix:.2f}")
        console.print(table)
    _harness.print_verdicts(console, goals(memory))
