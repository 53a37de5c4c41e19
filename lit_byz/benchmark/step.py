"""A whole training step: against the floor that plain torch sets, and against ByzFL."""

import argparse
import statistics
import time
from dataclasses import asdict, dataclass
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from lit_byz._native import plain_torch
from lit_byz.benchmark import _byzfl, _harness
from lit_byz.benchmark._simulations import (
    BATCH_SIZE,
    BYZFL_ATTACKS,
    MODEL,
    SEARCHED,
    byzfl_step,
    floors,
    our_module,
    synthetic_batches,
    take_turns_training,
)
from lit_byz.benchmark._timing import free_memory
from lit_byz.errors import RunFailed

DESCRIPTION = (
    "Time whole training steps, as ratios to plain torch's gradients and to ByzFL's steps."
)

# (h, f): the paper's MNIST runs, and a large server.
SIZES = [(10, 1), (30, 9)]
QUICK_SIZES = [(10, 1)]
TRACKING = "tracking"
# Steps of the run whose tracking is timed, and of the quick one.
TRACKED_STEPS, QUICK_TRACKED_STEPS = 200, 40
PLAIN_REPEATS = 5  # without compiled code, where a step may take seconds

# Goals: at most so many times the floor; at least so many times as fast as ByzFL.
SIMPLE_OVER_FLOOR = {"sf": 1.5, "mimic": 1.5, "lf": 2.2}
SEARCHED_OVER_FLOOR = 2.0  # with ten honest workers
SIMPLE_AHEAD = 4.0
SEARCHED_AHEAD = {(10, 1): 25.0, (30, 9): 40.0}
TRACKING_SHARE = 0.03


@dataclass(frozen=True)
class Row:
    """Steps under one attack; times in seconds, medians."""

    honest: int
    f: int
    attack: str
    gradient_method: str
    """How our per-worker gradients were computed."""
    floor: float
    floor_method: str
    ours: float
    uncompiled: float
    """Ours in plain torch, with the gradients computed in the way that is then the fastest."""
    byzfl: float
    over_floor: float
    over_floor_goal: float | None
    ahead: float
    ahead_goal: float | None


@dataclass(frozen=True)
class TrackingCost:
    """A tracked run on a real store, beside the same run untracked; times in seconds."""

    steps: int
    run: float
    metrics: float
    """What writing metrics took of the run."""
    share: float
    untracked: float


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    names = [*BYZFL_ATTACKS, TRACKING]
    quick = "ten honest workers, fewer repeats"
    _harness.add_options(parser, names, quick=quick, repeats=15)


def run(parsed: argparse.Namespace) -> int:
    """Measure, write the files, print the tables."""
    names = _harness.chosen(parsed, [*BYZFL_ATTACKS, TRACKING])
    attacks, tracking = [name for name in names if name != TRACKING], TRACKING in names
    byzfl = _byzfl.load()
    repeats, budget = (4, 3.0) if parsed.quick else (parsed.repeats, 20.0)
    sizes = QUICK_SIZES if parsed.quick else SIZES
    cases = [(*size, attack) for size in sizes for attack in attacks]
    rows, cost = [], None
    with _harness.progress_bar() as progress:
        task = progress.add_task("", total=len(cases) + tracking)
        for honest, f, attack in cases:
            progress.update(task, description=f"{attack}, n={honest + f}")
            rows.append(_row(byzfl, honest, f, attack, repeats, budget))
            progress.advance(task)
        if tracking:
            progress.update(task, description=TRACKING)
            cost = tracking_cost(QUICK_TRACKED_STEPS if parsed.quick else TRACKED_STEPS)
            progress.advance(task)
    spent = None if cost is None else asdict(cost)
    _harness.write(parsed.out, "step", rows, goals(rows, cost), tracking=spent)
    _print(Console(), rows, cost)
    return 0


def _row(byzfl: Any, honest: int, f: int, attack: str, repeats: int, budget: float) -> Row:
    batches = synthetic_batches(honest)
    module = our_module(batches, attack, f, steps=repeats + 1)
    if _byzfl.mixing_bytes(honest + f, f, module.flat.size) > free_memory():
        raise RunFailed(f"byzfl's NNM with {honest + f} workers needs more memory than there is")
    plain = floors(batches)
    others = {**plain, "byzfl": byzfl_step(byzfl, batches, attack, f)}
    timed = take_turns_training(module, others, budget)
    fewer = our_module(batches, attack, f, steps=min(repeats, PLAIN_REPEATS) + 1)
    with plain_torch():
        timed["uncompiled"] = take_turns_training(fewer, {}, budget)["ours"]
    medians = {name: statistics.median(seconds) for name, seconds in timed.items()}
    floor_method = min(plain, key=medians.__getitem__)
    floor, ours, theirs = medians[floor_method], medians["ours"], medians["byzfl"]
    return Row(
        honest=honest,
        f=f,
        attack=attack,
        gradient_method=str(module.gradient_method),
        floor=floor,
        floor_method=floor_method,
        ours=ours,
        uncompiled=medians["uncompiled"],
        byzfl=theirs,
        over_floor=ours / floor,
        over_floor_goal=_over_floor_goal(honest, attack),
        ahead=theirs / ours,
        ahead_goal=SEARCHED_AHEAD.get((honest, f)) if attack in SEARCHED else SIMPLE_AHEAD,
    )


def _over_floor_goal(honest: int, attack: str) -> float | None:
    if attack in SEARCHED:
        return SEARCHED_OVER_FLOOR if honest == 10 else None
    return SIMPLE_OVER_FLOOR[attack]


def tracking_cost(steps: int) -> TrackingCost:
    """What tracking adds to a run of the paper's MNIST model on the digits, in a new store."""
    from lightning.pytorch.callbacks import Callback

    from lit_byz import train
    from lit_byz.tracking import Tracker, open_store

    class Keep(Callback):
        tracker: Tracker

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self.tracker = trainer.logger

    settings = ["dataset=digits", f"model={MODEL}", "attack=sf", f"train.steps={steps}"]
    kept = Keep()
    with TemporaryDirectory() as folder:
        uri = f"sqlite:///{folder}/mlflow.db"
        tracked = f"tracking.uri={uri}"
        # What a process does once: tables of a new store, imports.
        open_store(uri)
        train([*settings, tracked, "train.steps=2", "seed=99"])
        begin = time.perf_counter()
        train([*settings, "tracking.enabled=false"])
        untracked = time.perf_counter() - begin
        begin = time.perf_counter()
        train([*settings, tracked], callbacks=[kept])
        seconds = time.perf_counter() - begin
    spent = kept.tracker.seconds
    return TrackingCost(steps, seconds, spent, spent / seconds, untracked)


def goals(rows: list[Row], cost: TrackingCost | None) -> dict[str, bool]:
    """What a full run should show; only what was measured is judged."""
    found = {}
    for row in rows:
        where = f"{row.attack} at n={row.honest + row.f}"
        if row.over_floor_goal is not None:
            goal = f"{where}: at most {row.over_floor_goal:g}× the floor"
            found[goal] = row.over_floor <= row.over_floor_goal
        if row.ahead_goal is not None:
            found[f"{where}: at least {row.ahead_goal:g}× as fast as byzfl"] = (
                row.ahead >= row.ahead_goal
            )
    if cost is not None:
        found[f"tracking: at most {TRACKING_SHARE:.0%} of a run"] = cost.share <= TRACKING_SHARE
    return found


def _verdict(value: float, goal: float | None, sign: str) -> str:
    """A ratio, in green or red where it should be ≤ or ≥ a goal."""
    if goal is None:
        return f"{value:.2f}×"
    colour = "green" if (value <= goal if sign == "≤" else value >= goal) else "red"
    return f"[{colour}]{value:.2f}×[/{colour}] ({sign} {goal:g})"


def _print(console: Console, rows: list[Row], cost: TrackingCost | None) -> None:
    for honest, f in dict.fromkeys((row.honest, row.f) for row in rows):
        table = Table(title=f"{MODEL}, h = {honest}, f = {f}, b = {BATCH_SIZE}")
        table.add_column("attack")
        times = ("floor, ms", "ours, ms", "without C++", "byzfl, ms")
        for heading in (*times, "ours / floor", "byzfl / ours"):
            table.add_column(heading, justify="right")
        table.add_column("gradients: ours, floor's")
        for row in rows:
            if (row.honest, row.f) == (honest, f):
                seconds = (row.floor, row.ours, row.uncompiled, row.byzfl)
                table.add_row(
                    row.attack,
                    *(f"{1e3 * t:.1f}" for t in seconds),
                    _verdict(row.over_floor, row.over_floor_goal, "≤"),
                    _verdict(row.ahead, row.ahead_goal, "≥"),
                    f"{row.gradient_method}; {row.floor_method}",
                )
        console.print(table)
    if cost is not None:
        console.print(
            f"tracking: {1e3 * cost.metrics:.0f} ms of {cost.run:.1f} s for {cost.steps} steps, "
            f"{cost.share:.2%}; the same run untracked takes {cost.untracked:.1f} s"
        )
    _harness.print_verdicts(console, goals(rows, cost))
