"""What stronger attackers cost: evaluations of the server and time of a step, by strength."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from rich.console import Console
from rich.table import Table

from lit_byz.attacks import ALIE, FOE, Attack, Scene, Span
from lit_byz.benchmark import _harness
from lit_byz.benchmark._progress import Cases
from lit_byz.benchmark._simulations import (
    floors,
    our_module,
    synthetic_batches,
    take_turns_training,
)
from lit_byz.robust import (
    ARC,
    CWTM,
    NNM,
    Basis,
    GeometricMedian,
    Geometry,
    MultiKrum,
    RobustAggregator,
    Rule,
)
from lit_byz.robust.vectors import Prepared

DESCRIPTION = "Time training steps under attackers of every strength, as ratios to plain torch's."

SIZES = [(10, 1), (10, 5)]
QUICK_SIZES = [(10, 1)]
RULES: dict[str, type[Rule]] = {"gm": GeometricMedian, "multi_krum": MultiKrum, "cwtm": CWTM}
ATTACKS: dict[str, Callable[[], Attack]] = {
    "foe@published": partial(FOE, search="published"),
    "foe@coarse": partial(FOE, search="coarse"),
    "foe": FOE,
    "alie": ALIE,
    "span": Span,
    "span, descent": partial(Span, objective="descent"),
    "span, drift": partial(Span, objective="drift"),
}
# A step under the strongest attack costs at most so many floors, with ten honest workers and f = 1.
GOALS = {"gm": 3.0, "multi_krum": 3.0, "cwtm": 5.0}


@dataclass(frozen=True)
class Row:
    """Steps under one attack on one server; times in seconds, medians."""

    honest: int
    f: int
    rule: str
    attack: str
    evaluations: int
    """How often the attackers ask what the server would make of a vector, at one step."""
    damage: float
    """What they do on the benchmark's vectors, ‖R − m̄‖ in units of ‖m̄‖."""
    floor: float
    ours: float
    over_floor: float


class _Counting(RobustAggregator):
    """A server that counts what it is asked."""

    asked = 0

    def prepare(self, geometry: Geometry, step: int = 0) -> Prepared:
        type(self).asked += max(1, geometry.matrix.shape[:-2].numel())
        return super().prepare(geometry, step)


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    quick = "ten honest workers and f = 1 only, fewer repeats"
    _harness.add_options(parser, list(RULES), quick=quick, repeats=12)


def run(parsed: argparse.Namespace) -> int:
    """Measure, write the files, print the table."""
    rules = _harness.chosen(parsed, list(RULES))
    repeats = 4 if parsed.quick else parsed.repeats
    sizes = QUICK_SIZES if parsed.quick else SIZES
    cases = [(*size, rule, attack) for size in sizes for rule in rules for attack in ATTACKS]
    rows = []
    with Cases(len(cases)) as told:
        for honest, f, rule, attack in cases:
            told.begin(f"{attack} on {rule}, n={honest + f}")
            rows.append(_row(honest, f, rule, attack, repeats))
            told.end()
            _harness.write(parsed.out, "strength", rows, goals(rows))
    _print(Console(), rows)
    return 0


def _row(honest: int, f: int, rule: str, attack: str, repeats: int) -> Row:
    batches = synthetic_batches(honest)
    made = RULES[rule]() if rule == "gm" else RULES[rule](f)  # type: ignore[call-arg]
    module = our_module(batches, ATTACKS[attack](), f, steps=repeats + 1, rule=made)
    plain = floors(batches)
    timed = take_turns_training(module, plain, budget=20.0, rivals=plain)
    floor, ours = min(map(timed.median, plain)), timed.median("ours")
    asked, damage = _asked(module.honest, f, made, ATTACKS[attack]())
    return Row(honest, f, rule, attack, asked, damage, floor, ours, ours / floor)


def _asked(honest: torch.Tensor, f: int, rule: Rule, attack: Attack) -> tuple[int, float]:
    """How often the attackers ask the server at one step, and the damage that they do."""
    _Counting.asked = 0
    server = _Counting(rule, clip=ARC(f), mix=NNM(f))
    move = attack.act(Scene(Basis(honest), f, server), {})
    assert move.damage is not None
    return _Counting.asked, move.damage / float(honest.mean(0).norm())


def goals(rows: list[Row]) -> dict[str, bool]:
    """What a full run should show; only what was measured is judged."""
    return {
        f"{row.attack} on {row.rule}, n=11: at most {GOALS[row.rule]:g}× the floor": (
            row.over_floor <= GOALS[row.rule]
        )
        for row in rows
        if row.attack.startswith("span") and (row.honest, row.f) == (10, 1)
    }


def _print(console: Console, rows: list[Row]) -> None:
    for honest, f in dict.fromkeys((row.honest, row.f) for row in rows):
        table = Table(title=f"{honest} honest workers, f = {f}, the paper's MNIST model")
        for heading in ("rule∘nnm∘arc", "attack"):
            table.add_column(heading)
        for heading in ("evaluations a step", "damage / ‖m̄‖", "step, ms", "× floor"):
            table.add_column(heading, justify="right")
        for row in rows:
            if (row.honest, row.f) == (honest, f):
                numbers = (f"{row.evaluations:,}", f"{row.damage:.3f}", f"{1e3 * row.ours:.0f}")
                table.add_row(row.rule, row.attack, *numbers, f"{row.over_floor:.2f}")
        console.print(table)
    _harness.print_verdicts(console, goals(rows))
