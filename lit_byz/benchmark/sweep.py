"""A whole sweep: how much of the cores' time the runs' floors are, start-up included."""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from lit_byz.benchmark import _harness
from lit_byz.benchmark._progress import Cases
from lit_byz.benchmark._ratio import Ratio
from lit_byz.benchmark._side_by_side import floor_side_by_side
from lit_byz.benchmark.run import require_data
from lit_byz.errors import RunFailed

DESCRIPTION = "Time whole sweeps, as the share of the cores' time that plain gradients would take."

GOAL = 0.7
COMMAND = "import sys; from lit_byz.cli.sweep import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True)
class Sweep:
    """Settings of a sweep, and the model and number of honest workers of its runs."""

    settings: tuple[str, ...]
    model: str
    honest: int
    steps: int
    dataset: str
    goal: float | None = None


SWEEPS = {
    "quickstart": Sweep(("experiment=quickstart",), "mlp", 10, 200, "digits"),
    # No attack and the paper's five, without clipping and with ARC: 12 runs.
    "mnist": Sweep(
        (
            "dataset=mnist",
            "partition=extreme",
            "clip=[none,arc]",
            "attack=[none,sf,lf,mimic,foe,alie]",
            "train.eval_every=50",
        ),
        "cnn_mnist",
        10,
        200,
        "mnist",
        GOAL,
    ),
}
QUICK_STEPS = 20


@dataclass(frozen=True)
class Row:
    """One sweep; times in seconds."""

    name: str
    runs: int
    steps: int
    cores: int
    wall: float
    """From the command to its end."""
    start_up: float
    """Until the first run begins."""
    busy: float
    """The sum of the runs' times."""
    winding_up: float
    """After the last run has ended: the table and its figures."""
    floor: float
    """Of one step with one thread, while every core computes one."""
    floors: float
    """Of all runs' steps."""
    efficiency: float
    goal: float | None
    efficiencies: tuple[float, ...] = ()
    """Of all sweeps with these settings; the row is the one in the middle."""

    @property
    def share_busy(self) -> float:
        """Of the cores' time that runs had."""
        return self.busy / (self.wall * self.cores)

    @property
    def inside(self) -> float:
        """The efficiency of the runs themselves."""
        return self.floors / self.busy


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    quick = f"{QUICK_STEPS} steps a run"
    _harness.add_options(parser, list(SWEEPS), quick=quick, repeats=2, threads=False)


def run(parsed: argparse.Namespace) -> int:
    """Measure, write the files, print the table."""
    names = _harness.chosen(parsed, list(SWEEPS))
    for name in names:
        require_data(SWEEPS[name].dataset)
    rows: list[Row] = []
    with Cases(len(names)) as told:
        for name in names:
            told.begin(f"sweep {name}")
            rows.append(
                middle(name, QUICK_STEPS, 1) if parsed.quick else middle(name, None, parsed.repeats)
            )
            told.end(f"efficiency {rows[-1].efficiency:.2f}")
            _harness.write(parsed.out, "sweep", rows, goals(rows))
    _print(_harness.wide_console(), rows)
    return 0


def middle(name: str, steps: int | None, repeats: int) -> Row:
    """So many sweeps, and of them the one in the middle."""
    rows = sorted((measure(name, steps) for _ in range(repeats)), key=lambda row: row.efficiency)
    found = rows[(len(rows) - 1) // 2]
    return replace(found, efficiencies=tuple(row.efficiency for row in rows))


def measure(name: str, steps: int | None = None) -> Row:
    """One sweep as a user would start it, in a new folder and store; before and after, the floor.

    ``steps`` are those of a run, where they are not the sweep's own.
    """
    sweep = SWEEPS[name]
    cores = len(os.sched_getaffinity(0))
    seconds = 5.0 if steps is None else 1.0
    steps = steps or sweep.steps
    floors = [floor_side_by_side(sweep.model, sweep.honest, cores, seconds)]
    with TemporaryDirectory() as folder:
        uri = f"sqlite:///{folder}/mlflow.db"
        settings = [*sweep.settings, f"train.steps={steps}", f"tracking.uri={uri}"]
        begin = time.time()
        compute(settings, Path(folder))
        end = time.time()
        times = run_times(uri)
    floors.append(floor_side_by_side(sweep.model, sweep.honest, cores, seconds))
    floor = min(floors)  # whatever else the machine did can only have added
    every = len(times) * steps * floor
    return Row(
        name=name,
        runs=len(times),
        steps=steps,
        cores=cores,
        wall=end - begin,
        start_up=min(start for start, _ in times) - begin,
        busy=sum(stop - start for start, stop in times),
        winding_up=end - max(stop for _, stop in times),
        floor=floor,
        floors=every,
        efficiency=every / ((end - begin) * cores),
        goal=sweep.goal if steps == sweep.steps else None,
    )


def compute(settings: list[str], folder: Path) -> None:
    """The command in a process of its own, in a folder where it may leave what it likes."""
    path = os.pathsep.join(str(Path(place).resolve()) for place in sys.path if place)
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *settings, "--progress", "none"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RunFailed(f"the sweep ended with code {done.returncode}: {done.stderr[-300:]}")


def run_times(uri: str) -> list[tuple[float, float]]:
    """When each run began and ended, in seconds, as the store has it."""
    from lit_byz.tracking import open_store

    client = open_store(uri).client
    every = [experiment.experiment_id for experiment in client.search_experiments()]
    found = client.search_runs(every, "tags.`lit_byz.status` = 'finished'", max_results=1000)
    return [(run.info.start_time / 1e3, run.info.end_time / 1e3) for run in found]


def goals(rows: list[Row]) -> dict[str, bool | str]:
    """What a full run should show."""
    return {
        f"sweep {row.name}: efficiency at least {row.goal:g}": Ratio.of(
            row.efficiencies, [1.0] * len(row.efficiencies)
        ).verdict(row.goal, "≥")
        for row in rows
        if row.goal is not None
    }


def _print(console: Console, rows: list[Row]) -> None:
    table = Table(title="whole sweeps, start-up included")
    table.add_column("sweep")
    for heading in ("runs", "steps", "wall, s", "start-up", "winding up", "floor, ms"):
        table.add_column(heading, justify="right")
    for heading in ("cores busy", "floors / runs", "efficiency"):
        table.add_column(heading, justify="right")
    for row in rows:
        times = [f"{t:.1f}" for t in (row.wall, row.start_up, row.winding_up, 1e3 * row.floor)]
        shares = [f"{share:.2f}" for share in (row.share_busy, row.inside, row.efficiency)]
        table.add_row(row.name, str(row.runs), str(row.steps), *times, *shares)
    console.print(table)
    _harness.print_verdicts(console, goals(rows))
