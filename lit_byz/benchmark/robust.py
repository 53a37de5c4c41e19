"""The server: every rule with and without ARC and NNM, beside ByzFL's."""

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from lit_byz._native import plain_torch
from lit_byz._streams import Stream, torch_generator
from lit_byz.benchmark import _byzfl, _harness
from lit_byz.benchmark._progress import Cases
from lit_byz.benchmark._runtime import draw_runtime, measure_runtime, runtime_sizes
from lit_byz.benchmark._timing import free_memory, take_turns
from lit_byz.errors import RunFailed

DESCRIPTION = "Time the server's rules with and without ARC and NNM, as ratios to ByzFL's."

# (n, f, d): the paper's MNIST and CIFAR-10 models with 10 and 16 honest workers; a large server.
SIZES = [(11, 1, 431_080), (17, 1, 1_310_922), (39, 9, 431_080)]
QUICK_SIZES = [(11, 1, 431_080), (39, 9, 431_080)]
QUICK_RULES = ["cwtm", "cwmed", "gm", "multi_krum"]
FIGURE = "figure"
# ByzFL tries every subset in Python; ours refuse more than they can try too.
SUBSET_RULES = ("mda", "smea")
MOST_SUBSETS = 5_000
# Two float32 computations of the same thing differ by less than this, relatively.
AGREEMENT = 1e-4
# The goals that a full run is held against.
WHOLE_SERVER_RATIO = 20.0
WHOLE_SERVER_SIZES = [(11, 431_080), (39, 431_080)]
ARC_SHARE = 0.05


@dataclass(frozen=True)
class Row:
    """One composition at one size; times in seconds."""

    n: int
    f: int
    d: int
    rule: str
    arc: bool
    nnm: bool
    ours: float
    uncompiled: float
    """Ours in plain torch."""
    byzfl: float
    ratio: float
    difference: float | None
    """Relative distance between the two outputs, where definitions agree."""

    @property
    def name(self) -> str:
        return self.rule + "∘nnm" * self.nnm + "∘arc" * self.arc


@dataclass(frozen=True)
class AddedCost:
    """What ARC adds to CWTM∘NNM here, beside what NNM takes in ByzFL; times in seconds."""

    n: int
    f: int
    d: int
    added: float
    byzfl_nnm: float
    share: float


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    names = [*_byzfl.PAIRS, FIGURE]
    _harness.add_options(parser, names, quick="fewer rules, sizes and repeats", repeats=7)


def run(parsed: argparse.Namespace) -> int:
    """Measure, write the files, print the tables."""
    rules, figure = _chosen(parsed)
    byzfl = _byzfl.load()
    console = Console()
    repeats, budget = (3, 3.0) if parsed.quick else (parsed.repeats, 15.0)
    cases = [case for size in _sizes(parsed.quick) for case in _cases(size, rules)]
    points = runtime_sizes(quick=parsed.quick) if figure else []
    steps = len(cases) + len(points) + (len(_sizes(parsed.quick)) if rules else 0)
    rows, added, runtimes = [], [], []
    with Cases(steps) as told:
        for size in _sizes(parsed.quick) if rules else []:
            x = gradients(*size)
            told.begin(f"ARC's cost, n={size[0]}")
            added.append(_added_cost(byzfl, x, size, repeats, budget))
            told.end()
            for rule, arc, nnm in (case[3:] for case in cases if case[:3] == size):
                told.begin(f"{rule}{'∘nnm' * nnm}{'∘arc' * arc}, n={size[0]}")
                rows.append(_row(byzfl, x, size, rule, arc, nnm, repeats, budget))
                told.end(f"byzfl / ours {rows[-1].ratio:.1f}×")
                _harness.write(parsed.out, "robust", rows, goals(rows, added))
        for point in points:
            told.begin(f"runtime, n={point[0]}, d={point[1]:,}")
            runtimes.append(measure_runtime(byzfl, *point, repeats=repeats, budget=budget))
            told.end()
    _harness.write(
        parsed.out,
        "robust",
        rows,
        goals(rows, added),
        arc_added=[asdict(cost) for cost in added],
        runtime=[asdict(point) for point in runtimes],
    )
    if runtimes:
        draw_runtime(runtimes, parsed.out / "runtime.png")
    _print(console, rows, added)
    console.print(f"written to {parsed.out}")
    apart = [row for row in rows if row.difference is not None and row.difference > AGREEMENT]
    if apart:
        worst = max(apart, key=lambda row: row.difference or 0.0)
        raise RunFailed(
            f"{len(apart)} outputs differ from byzfl's by more than {AGREEMENT:g}, most of all "
            f"{worst.name} at n={worst.n}: {worst.difference:.2g}"
        )
    return 0


def gradients(n: int, f: int, d: int) -> torch.Tensor:
    """Vectors as a server meets them: honest ones that differ in length, f copies of another."""
    generator = torch_generator(n + d, Stream.BENCHMARKS)
    x = torch.randn(n, d, generator=generator).add_(0.1)
    x *= torch.linspace(0.5, 2.0, n).unsqueeze(1)
    x[n - f :] = -3.0 * x[: n - f].mean(0)
    return x


def _chosen(parsed: argparse.Namespace) -> tuple[list[str], bool]:
    """The rules to time, and whether to draw the figure."""
    names = _harness.chosen(parsed, [*_byzfl.PAIRS, FIGURE])
    if parsed.only is None and parsed.quick:
        return QUICK_RULES, True
    return [name for name in names if name != FIGURE], FIGURE in names


def _sizes(quick: bool) -> list[tuple[int, int, int]]:
    return QUICK_SIZES if quick else SIZES


def _cases(
    size: tuple[int, int, int], rules: list[str]
) -> Iterator[tuple[int, int, int, str, bool, bool]]:
    n, f, _ = size
    for rule in rules:
        if rule in SUBSET_RULES and math.comb(n, f) > MOST_SUBSETS:
            continue
        for nnm in (False, True) if _byzfl.PAIRS[rule].mixes else (False,):
            for arc in (False, True):
                yield (*size, rule, arc, nnm)


def _row(
    byzfl: Any,
    x: torch.Tensor,
    size: tuple[int, int, int],
    rule: str,
    arc: bool,
    nnm: bool,
    repeats: int,
    budget: float,
) -> Row:
    n, f, d = size
    if nnm and _byzfl.mixing_bytes(n, f, d) > free_memory():
        raise RunFailed(f"byzfl's NNM at n={n}, d={d} needs more memory than there is")
    ours = _byzfl.our_server(rule, f, arc=arc, nnm=nnm)
    theirs = _byzfl.their_server(byzfl, rule, f, arc=arc, nnm=nnm)
    difference = None
    # Of values that are equally far from the median, up to rounding, MeaMed may take either.
    if _byzfl.PAIRS[rule].same and rule != "meamed":
        expected = theirs(x.clone()).double()
        difference = float((ours(x).double() - expected).norm() / expected.norm())
    functions: dict[str, Callable[[torch.Tensor], object]]
    functions = {"ours": ours, "uncompiled": plain_torch()(ours), "byzfl": theirs}
    timings = take_turns(functions, x, repeats=repeats, budget=budget)
    a, plain, b = (timings.median(name) for name in functions)
    return Row(n, f, d, rule, arc, nnm, a, plain, b, b / a, difference)


def _added_cost(
    byzfl: Any, x: torch.Tensor, size: tuple[int, int, int], repeats: int, budget: float
) -> AddedCost:
    functions = {
        "without": _byzfl.our_server("cwtm", size[1], arc=False, nnm=True),
        "with": _byzfl.our_server("cwtm", size[1], arc=True, nnm=True),
        "byzfl": byzfl.NNM(f=size[1]),
    }
    timings = take_turns(functions, x, repeats=max(5, repeats), budget=budget)
    added = max(0.0, timings.median_difference("with", "without"))
    nnm = timings.median("byzfl")
    return AddedCost(*size, added, nnm, added / nnm)


def goals(rows: list[Row], added: list[AddedCost]) -> dict[str, bool]:
    """What a full run should show; only what was measured is judged."""
    found = {}
    if rows:
        found["ahead in every row"] = all(row.ratio > 1 for row in rows)
    for row in rows:
        if row.name == "cwtm∘nnm∘arc" and (row.n, row.d) in WHOLE_SERVER_SIZES:
            goal = f"{row.name} at n={row.n}: at least {WHOLE_SERVER_RATIO:g}×"
            found[goal] = row.ratio >= WHOLE_SERVER_RATIO
    for cost in added:
        goal = f"ARC at n={cost.n}, d={cost.d:,}: at most {ARC_SHARE:.0%} of byzfl's NNM"
        found[goal] = cost.share <= ARC_SHARE
    return found


def _print(console: Console, rows: list[Row], added: list[AddedCost]) -> None:
    for size in dict.fromkeys((row.n, row.f, row.d) for row in rows):
        table = Table(title=f"n = {size[0]}, f = {size[1]}, d = {size[2]:,}")
        for heading in ("server", "ours, ms", "without C++", "byzfl, ms", "ratio", "difference"):
            table.add_column(heading, justify="left" if heading == "server" else "right")
        for row in rows:
            if (row.n, row.f, row.d) == size:
                apart = "" if row.difference is None else f"{row.difference:.0e}"
                times = (f"{1e3 * t:.2f}" for t in (row.ours, row.uncompiled, row.byzfl))
                table.add_row(row.name, *times, f"{row.ratio:.1f}×", apart)
        console.print(table)
    for cost in added:
        console.print(
            f"ARC adds {1e3 * cost.added:.2f} ms at n = {cost.n}, d = {cost.d:,}: "
            f"{cost.share:.1%} of byzfl's NNM ({1e3 * cost.byzfl_nnm:.0f} ms)"
        )
    _harness.print_verdicts(console, goals(rows, added))
