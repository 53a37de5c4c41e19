"""A whole training step: against the floor that plain torch sets, by hand, and against ByzFL."""

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lit_byz._native import instructions, plain_torch
from lit_byz.benchmark import _byzfl, _harness, _step_rows, _step_table
from lit_byz.benchmark._byzfl_step import byzfl_step
from lit_byz.benchmark._progress import Cases
from lit_byz.benchmark._simulations import (
    MODEL,
    Step,
    floors,
    loss_of,
    new_model,
    our_module,
    synthetic_batches,
    take_turns_training,
)
from lit_byz.benchmark._step_rows import SEARCHED, Case, Row, TrackingCost
from lit_byz.benchmark._timing import free_memory
from lit_byz.benchmark.by_hand import ByHand
from lit_byz.data import WorkerBatches
from lit_byz.errors import BadRequest, RunFailed

DESCRIPTION = (
    "Time whole training steps, as ratios to plain torch's gradients, to a step written by hand, "
    "and to ByzFL's."
)

TRACKING = "tracking"
# Steps of the run whose tracking is timed, and of the quick one.
TRACKED_STEPS, QUICK_TRACKED_STEPS = 200, 40
PLAIN_REPEATS = 5  # without compiled code, where a step may take seconds
LARGE_REPEATS = 5  # of models whose steps take seconds anyway


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    quick = "ten honest workers, fewer repeats"
    _harness.add_options(parser, _names(), quick=quick, repeats=15)
    parser.add_argument("--n", nargs="+", type=int, metavar="N", help="only with so many workers")
    parser.add_argument("--add", action="store_true", help="keep the rows that the folder has")
    parser.add_argument("--show", action="store_true", help="print these, measure nothing")
    parser.add_argument("--markdown", action="store_true", help="print tables for a page")


def _names() -> list[str]:
    return [*dict.fromkeys(case.name for case in _step_rows.cases(quick=False)), TRACKING]


def run(parsed: argparse.Namespace) -> int:
    """Measure, write the files, print the tables."""
    names = _harness.chosen(parsed, _names())
    rows: list[Row] = []
    cost: TrackingCost | None = None
    if parsed.add or parsed.show:
        rows, cost = _earlier(parsed.out / "step.json")
    if not parsed.show:
        byzfl = _byzfl.load()
        repeats, budget = (4, 3.0) if parsed.quick else (parsed.repeats, 20.0)
        chosen = [
            case
            for case in _step_rows.cases(quick=parsed.quick)
            if case.name in names and (parsed.n is None or case.n in parsed.n)
        ]
        tracking = TRACKING in names and (parsed.only is not None or parsed.n is None)
        if not chosen and not tracking:
            raise BadRequest("--only, --n: no case is left; --quick leaves out the large ones")
        with Cases(len(chosen) + tracking) as told:
            for case in chosen:
                told.begin(f"{case.name}, n={case.n}")
                row = measure(byzfl, case, repeats, budget)
                told.end(f"ours / floor {row.over_floor:.2f}×")
                rows = _step_rows.merged(rows, [row])
                _write(parsed.out, rows, cost)
            if tracking:
                told.begin(TRACKING)
                cost = tracking_cost(QUICK_TRACKED_STEPS if parsed.quick else TRACKED_STEPS)
                told.end(f"{cost.share:.2%} of a run")
                _write(parsed.out, rows, cost)
    console = _harness.wide_console()
    if parsed.markdown:
        console.print(
            _step_table.markdown(rows, cost, instructions()),
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    else:
        _step_table.show(console, rows, cost)
    return 0


def _earlier(path: Path) -> tuple[list[Row], TrackingCost | None]:
    if not path.exists():
        raise BadRequest(f"{path}: there is no such file; measure without --add and --show first")
    content = json.loads(path.read_text())
    if content["machine"]["instructions"] != instructions():
        raise BadRequest(
            f"{path}: measured with {content['machine']['instructions']}, this process uses "
            f"{instructions()}: give another folder with --out"
        )
    return _step_rows.read(content)


def _write(folder: Path, rows: list[Row], cost: TrackingCost | None) -> None:
    found = _step_rows.goals(rows, cost)
    _harness.write(folder, "step", rows, found, tracking=_step_rows.plain(cost))


def measure(byzfl: Any, case: Case, repeats: int, budget: float) -> Row:
    """One case; the floors, the step by hand and ByzFL's take turns with our training."""
    repeats = min(repeats, LARGE_REPEATS) if case.is_large else repeats
    batches = synthetic_batches(case.honest, case.model)
    rule = _byzfl.PAIRS[case.rule].ours(case.f)

    def ours(steps: int) -> Any:
        return our_module(batches, case.attack, case.f, steps + 1, rule, case.model)

    module = ours(repeats)
    plain = floors(batches, case.model)
    others: dict[str, Step] = {**plain, "by hand": by_hand_step(batches, case)}
    if not case.is_large:
        if _byzfl.mixing_bytes(case.n, case.f, module.flat.size) > free_memory():
            raise RunFailed(f"byzfl's NNM with {case.n} workers needs more memory than there is")
        others["byzfl"] = byzfl_step(byzfl, batches, case.attack, case.f, case.rule)
    slow = ("byzfl", "by hand") if case.attack in SEARCHED and case.n > 20 else ()
    timed = take_turns_training(module, others, budget, rivals=plain, cold=slow)
    with plain_torch():
        fewer = ours(2 if case.is_large else min(repeats, PLAIN_REPEATS))
        uncompiled = take_turns_training(fewer, {}, budget).median("ours")
    floor = min(plain, key=timed.median)
    over = timed.ratio("ours", floor)
    before = timed.ratio("byzfl", "ours") if "byzfl" in others else None
    return Row(
        name=case.name,
        model=case.model,
        honest=case.honest,
        f=case.f,
        batch_size=batches.batch_size,
        attack=case.attack,
        rule=case.rule,
        gradient_method=str(module.gradient_method),
        turns=len(timed.seconds["ours"]),
        floor=timed.median(floor),
        floor_method=floor,
        ours=timed.median("ours"),
        uncompiled=uncompiled,
        by_hand=timed.median("by hand"),
        byzfl=timed.median("byzfl") if "byzfl" in others else None,
        over_floor=over.median,
        over_floor_low=over.low,
        over_floor_high=over.high,
        over_floor_goal=case.over_floor_goal,
        ahead_of_hand=timed.ratio("by hand", "ours").median,
        ahead=before.median if before else None,
        ahead_low=before.low if before else None,
        ahead_high=before.high if before else None,
        ahead_goal=case.ahead_goal,
    )


def by_hand_step(batches: WorkerBatches, case: Case) -> Step:
    """A step of the same training as one would write it in plain torch."""
    model = new_model(case.model)
    hand = ByHand(model, loss_of(model), f=case.f, attack=case.attack, rule=case.rule)
    return lambda: hand.step(*batches.round(hand.steps))


def tracking_cost(steps: int) -> TrackingCost:
    """What tracking adds to a run of the paper's MNIST model on the digits, in a new store."""
    from lightning.pytorch.callbacks import Callback

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
        _harness.train_to_the_end([*settings, tracked, "train.steps=2", "seed=99"])
        begin = time.perf_counter()
        _harness.train_to_the_end([*settings, "tracking.enabled=false"])
        untracked = time.perf_counter() - begin
        begin = time.perf_counter()
        _harness.train_to_the_end([*settings, tracked], [kept])
        seconds = time.perf_counter() - begin
    spent = kept.tracker.seconds
    return TrackingCost(steps, seconds, spent, spent / seconds, untracked)
