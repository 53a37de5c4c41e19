"""Optimised FOE and ALIE against the whole server, beside ByzFL's."""

import argparse
import statistics
import time
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from lit_byz._native import plain_torch
from lit_byz.attacks import ALIE, FOE, Scene, SearchedAttack
from lit_byz.benchmark import _byzfl, _harness
from lit_byz.benchmark._progress import Cases
from lit_byz.benchmark._timing import free_memory
from lit_byz.benchmark.robust import gradients
from lit_byz.errors import BadRequest, RunFailed
from lit_byz.registry import nearest
from lit_byz.robust import Basis, RobustAggregator

DESCRIPTION = "Time the search of optimised FOE and ALIE under ARC and NNM, as a ratio to ByzFL's."

PARAMETERS = 431_080  # the paper's MNIST model
# Honest workers, and f.
SIZES = [(10, 1), (10, 5), (30, 9)]
QUICK_SIZES = [(10, 1)]
ATTACKS: dict[str, tuple[type[SearchedAttack], str]] = {
    "foe": (FOE, "Optimal_InnerProductManipulation"),
    "alie": (ALIE, "Optimal_ALittleIsEnough"),
}
EVALUATIONS = 20
# Timed beside the chosen search: weaker ones.
WEAKER = ("published", "coarse")
PLAIN_REPEATS = 2  # without compiled code, where a search may take seconds
# How many times as fast as ByzFL's a search should be, by rule.
GOALS = {"cwtm": 30.0, "cwmed": 30.0, "gm": 200.0, "multi_krum": 200.0}
# Damages this close, relatively, are the same. Some creep towards a limit as the factor grows, and
# ByzFL's search then runs away with it.
SAME = 1e-4
HEADINGS = ("ours, ms", "without C++", "byzfl, ms", "ratio", "damage", "byzfl's")


@dataclass(frozen=True)
class Row:
    """One attack on one server; times in seconds, damages both by our server."""

    honest: int
    f: int
    d: int
    attack: str
    rule: str
    ours: float
    uncompiled: float
    """Ours in plain torch."""
    byzfl: float
    ratio: float
    our_damage: float
    byzfl_damage: float
    published: float
    coarse: float


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    _harness.add_options(parser, list(GOALS), quick="10 honest workers and f = 1 only", repeats=5)
    parser.add_argument("--search", default="grid", help="our search: grid (default), line, …")
    parser.add_argument("--parameters", type=int, default=PARAMETERS, help="model size (431080)")


def run(parsed: argparse.Namespace) -> int:
    """Measure, write the files, print the tables."""
    rules = _harness.chosen(parsed, list(GOALS))
    if parsed.search not in FOE.searches():
        raise BadRequest(f"--search: {nearest(parsed.search, FOE.searches())}")
    if parsed.parameters < 1:
        raise BadRequest(f"--parameters {parsed.parameters}: must be at least 1")
    byzfl = _byzfl.load()
    sizes = QUICK_SIZES if parsed.quick else SIZES
    made = {"evaluations": EVALUATIONS, "search": parsed.search}
    rows = []
    with Cases(len(sizes) * len(rules) * len(ATTACKS)) as told:
        for h, f in sizes:
            honest = gradients(h + f, f, parsed.parameters)[:h]
            for rule in rules:
                for attack in ATTACKS:
                    told.begin(f"{attack} on {rule}, n={h + f}, f={f}")
                    rows.append(_row(byzfl, honest, f, attack, rule, parsed.search, parsed.repeats))
                    told.end(f"byzfl / ours {rows[-1].ratio:.0f}×")
                    _harness.write(parsed.out, "attacks", rows, goals(rows), **made)
    console = Console()
    _print(console, rows)
    console.print(f"written to {parsed.out}")
    return 0


def _row(
    byzfl: Any, honest: torch.Tensor, f: int, name: str, rule: str, search: str, repeats: int
) -> Row:
    h, d = honest.shape
    if _byzfl.mixing_bytes(h + f, f, d) > free_memory():
        raise RunFailed(f"byzfl's NNM at n={h + f}, d={d} needs more memory than there is")
    attack, theirs = ATTACKS[name]
    server = _byzfl.our_server(rule, f, arc=True, nnm=True)
    # As in training, where the attackers have a row beside the honest ones to write to.
    buffer = torch.cat([honest, honest.new_empty(1, d)])

    def ours(strength: str) -> torch.Tensor:
        scene = Scene(Basis(buffer[:h]), f, server, buffer=buffer)
        return attack(search=strength).act(scene, {}).vector()

    def seconds(strength: str) -> float:
        return statistics.median(_timed(lambda: ours(strength))[0] for _ in range(repeats))

    sent = ours(search)
    our_seconds = seconds(search)
    plain_seconds = [_timed(lambda: plain_torch()(ours)(search))[0] for _ in range(PLAIN_REPEATS)]
    search_theirs = getattr(byzfl, theirs)(
        agg=_byzfl.PAIRS[rule].theirs(byzfl, f),
        pre_agg_list=[byzfl.ARC(f=f), byzfl.NNM(f=f)],
        f=f,
        evals=EVALUATIONS,
    )
    their_seconds, their_sent = _timed(lambda: search_theirs(honest.clone()))
    return Row(
        h,
        f,
        d,
        name,
        rule,
        our_seconds,
        statistics.median(plain_seconds),
        their_seconds,
        their_seconds / our_seconds,
        damage(server, honest, f, sent),
        damage(server, honest, f, their_sent),
        *(seconds(strength) for strength in WEAKER),
    )


def _timed(call: Any) -> tuple[float, torch.Tensor]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def damage(server: RobustAggregator, honest: torch.Tensor, f: int, sent: torch.Tensor) -> float:
    """How far the server's output moves from the honest mean if f workers send ``sent``."""
    output = server(torch.cat([honest, sent.expand(f, -1)]))
    return float((output.double() - honest.double().mean(0)).norm())


def goals(rows: list[Row]) -> dict[str, bool]:
    """What a full run should show; only what was measured is judged."""
    found = {}
    for rule in dict.fromkeys(row.rule for row in rows):
        least = min(row.ratio for row in rows if row.rule == rule)
        found[f"{rule}: at least {GOALS[rule]:g}× in every row"] = least >= GOALS[rule]
    found["at least byzfl's damage in every row"] = all(
        row.our_damage >= (1 - SAME) * row.byzfl_damage for row in rows
    )
    return found


def _print(console: Console, rows: list[Row]) -> None:
    for size in dict.fromkeys((row.honest, row.f, row.d) for row in rows):
        table = Table(title=f"{size[0]} honest workers, f = {size[1]}, d = {size[2]:,}")
        weaker = Table(title="weaker searches, ms")
        words = ("attack", "rule∘nnm∘arc")
        for heading in (*words, *HEADINGS):
            table.add_column(heading, justify="left" if heading in words else "right")
        for heading in (*words, *WEAKER):
            weaker.add_column(heading, justify="left" if heading in words else "right")
        for row in rows:
            if (row.honest, row.f, row.d) == size:
                times = (f"{1e3 * row.ours:.1f}", f"{1e3 * row.uncompiled:.0f}")
                theirs = (f"{1e3 * row.byzfl:.0f}", f"{row.ratio:.0f}×")
                damages = (f"{row.our_damage:.5g}", f"{row.byzfl_damage:.5g}")
                table.add_row(row.attack, row.rule, *times, *theirs, *damages)
                weaker.add_row(
                    row.attack, row.rule, *(f"{1e3 * x:.1f}" for x in (row.published, row.coarse))
                )
        console.print(table)
        console.print(weaker)
    _harness.print_verdicts(console, goals(rows))
