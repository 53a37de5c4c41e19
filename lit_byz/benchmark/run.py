"""A complete run: evaluation, tracking, checkpoints and Lightning's loop, over its steps alone."""

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from tempfile import TemporaryDirectory
from typing import Any

from lightning.pytorch.callbacks import Callback
from rich.console import Console
from rich.table import Table

from lit_byz.benchmark import _harness
from lit_byz.benchmark._progress import Cases
from lit_byz.benchmark._ratio import Ratio
from lit_byz.benchmark._simulations import MODEL, floors
from lit_byz.benchmark._timing import Timings
from lit_byz.data import DATASETS, SourceFailed
from lit_byz.errors import RunFailed

DESCRIPTION = (
    "Time complete MNIST runs, with everything, as ratios to their steps and to the floor."
)

ATTACKS = ("sf", "foe")
STEPS, QUICK_STEPS = 400, 100
GOAL = 1.15
FLOOR_REPEATS = 8


@dataclass(frozen=True)
class Row:
    """Complete runs under one attack; times in seconds, of all steps, medians over the runs."""

    attack: str
    steps: int
    runs: int
    everything: float
    """From the config to the closed run, imports left out."""
    in_steps: float
    """The sum over the calls of ``training_step``."""
    evaluation: float
    tracking: float
    checkpoints: float
    other: float
    """Building the run, figures, batches, Lightning's loop."""
    floor: float
    over_steps: float
    over_steps_low: float
    over_steps_high: float
    over_floor: float

    @property
    def over(self) -> Ratio:
        return Ratio(self.over_steps, self.over_steps_low, self.over_steps_high)


class Clock(Callback):
    """What a run spends where; it stands aside of the run's own callbacks."""

    def __init__(self) -> None:
        self.in_steps = self.evaluation = self.tracking = self.checkpoints = 0.0
        self.batches: Any = None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        from lit_byz.training import RoundCheckpoint

        self.batches = pl_module.batches
        pl_module.training_step = self._timed("in_steps", pl_module.training_step)
        for callback in trainer.callbacks:
            if isinstance(callback, RoundCheckpoint):
                callback.save = self._timed("checkpoints", callback.save)  # type: ignore[method-assign]

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        from lit_byz.training import AccuracyTracker

        watched = (c for c in trainer.callbacks if isinstance(c, AccuracyTracker))
        self.evaluation = next(watched).seconds
        self.tracking = trainer.logger.seconds

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            begin = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                setattr(self, name, getattr(self, name) + time.perf_counter() - begin)

        return call


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    _harness.add_options(parser, list(ATTACKS), quick="fewer steps, two runs", repeats=3)
    parser.add_argument("--dataset", default="mnist", help="its images (mnist)")


def run(parsed: argparse.Namespace) -> int:
    """Measure, write the files, print the table."""
    attacks = _harness.chosen(parsed, list(ATTACKS))
    require_data(parsed.dataset)
    steps, repeats = (QUICK_STEPS, 2) if parsed.quick else (STEPS, parsed.repeats)
    rows: list[Row] = []
    with Cases(len(attacks)) as told:
        for attack in attacks:
            told.begin(f"{repeats} runs of {steps} steps, {attack}")
            rows.append(measure(parsed.dataset, attack, steps, repeats))
            told.end(f"everything / steps {rows[-1].over_steps:.2f}×")
            _harness.write(parsed.out, "run", rows, goals(rows), dataset=parsed.dataset)
    _print(_harness.wide_console(), rows, parsed.dataset)
    return 0


def require_data(name: str) -> None:
    """Fetch a data set if need be, or say that it cannot be had."""
    try:
        DATASETS[name]().load(None)
    except (OSError, SourceFailed) as error:
        advice = f"python pipelines/data.py fetch {name}"
        raise RunFailed(f"the benchmark needs {name}: {error}; see {advice}") from error


def measure(dataset: str, attack: str, steps: int, repeats: int) -> Row:
    """So many runs, each with a seed and a store of its own; a short one before them warms up."""
    found: list[tuple[float, Clock]] = []
    complete_run(dataset, attack, 2, seed=0)
    for seed in range(1, repeats + 1):
        found.append(complete_run(dataset, attack, steps, seed))
    taken = [seconds for seconds, _ in found]
    in_steps = [clock.in_steps for _, clock in found]
    over = Ratio.of(taken, in_steps)
    middle = sorted(found, key=lambda pair: pair[0])[len(found) // 2]
    clock = middle[1]
    known = clock.in_steps + clock.evaluation + clock.tracking + clock.checkpoints
    floor = steps * floor_of(clock.batches)
    return Row(
        attack=attack,
        steps=steps,
        runs=repeats,
        everything=middle[0],
        in_steps=clock.in_steps,
        evaluation=clock.evaluation,
        tracking=clock.tracking,
        checkpoints=clock.checkpoints,
        other=middle[0] - known,
        floor=floor,
        over_steps=over.median,
        over_steps_low=over.low,
        over_steps_high=over.high,
        over_floor=middle[0] / floor,
    )


def complete_run(dataset: str, attack: str, steps: int, seed: int) -> tuple[float, Clock]:
    """Seconds of a run with everything, and where they went."""
    from lit_byz.tracking import open_store

    clock = Clock()
    with TemporaryDirectory() as folder:
        uri = f"sqlite:///{folder}/mlflow.db"
        open_store(uri)  # its tables are made once, not by every run
        settings = [f"dataset={dataset}", f"model={MODEL}", f"attack={attack}", f"seed={seed}"]
        settings += ["partition=extreme", "train.eval_every=50", f"train.steps={steps}"]
        begin = time.perf_counter()
        _harness.train_to_the_end([*settings, f"tracking.uri={uri}"], [clock])
        return time.perf_counter() - begin, clock


def floor_of(batches: Any) -> float:
    """Seconds of the fastest plain forward and backward pass over a step's examples."""
    passes = floors(batches)
    seconds: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(FLOOR_REPEATS + 1):
        for name, step in passes.items():
            begin = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - begin)
    timed = Timings({name: taken[1:] for name, taken in seconds.items()})
    return min(map(timed.median, passes))


def goals(rows: list[Row]) -> dict[str, bool | str]:
    """What a full run should show."""
    return {
        f"{row.attack}: a complete run takes at most {GOAL:g}× its steps": row.over.verdict(
            GOAL, "≤"
        )
        for row in rows
    }


def _print(console: Console, rows: list[Row], dataset: str) -> None:
    table = Table(title=f"complete runs on {dataset}, evaluated every 50 steps; seconds")
    table.add_column("attack")
    parts = ("in_steps", "evaluation", "tracking", "checkpoints", "other", "everything", "floor")
    for heading in ("steps", *(part.replace("_", " ") for part in parts)):
        table.add_column(heading, justify="right")
    for heading in ("everything / steps", "everything / floor"):
        table.add_column(heading, justify="right")
    for row in rows:
        content = asdict(row)
        over = f"{row.over_steps:.2f}× \\[{row.over_steps_low:.2f}, {row.over_steps_high:.2f}]"
        numbers = [f"{content[part]:.2f}" for part in parts]
        table.add_row(row.attack, str(row.steps), *numbers, over, f"{row.over_floor:.2f}×")
    console.print(table)
    _harness.print_verdicts(console, goals(rows))
