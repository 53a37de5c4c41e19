"""Model initialisation: worst cases and initial gradients as all initial parameters grow by μ.

The runs are a sweep's: an experiment file gives the grid over clip, μ, attack and seed, and
:func:`study_points` adds Byzantine-free DSGD for each μ and seed.
"""

import math
from dataclasses import replace
from typing import Any

from lightning.pytorch.callbacks import Callback
from omegaconf import DictConfig
from rich.console import Console

from lit_byz.experiment.conclusion import accuracies
from lit_byz.experiment.config import compose, to_plain
from lit_byz.experiment.grid import Grid, Point, points
from lit_byz.experiment.run import train
from lit_byz.experiment.study import (
    exit_code,
    files,
    keep,
    problems,
    setting,
    tell_problems,
    tell_saving,
    tell_where,
    write_json,
)
from lit_byz.experiment.sweep import Sweep
from lit_byz.report.init_scaling import Curves, InitialGradients, Norms, as_csv, figure, growth
from lit_byz.report.init_scaling import table as as_table
from lit_byz.report.worst_case_table import worst_cases

SCALE = "model.init_scale"
DSGD = {
    "workers.f": 0,
    "server.f": 0,
    "clip": "none",
    "mix": "none",
    "rule": "average",
    "attack": "none",
}
# How the paper calls them.
METHODS = {"none": "no clipping", "arc": "ARC"}


def study_points(grid: Grid) -> list[Point]:
    """The runs of a grid, and Byzantine-free DSGD for every scale, seed and further axis of it."""
    every = list(grid.values())
    baselines: list[dict[str, Any]] = []
    for values in every:
        # An axis over an argument goes with its component: clip.C with clip.
        others = {k: v for k, v in values.items() if not {k, k.split(".")[0]} & DSGD.keys()}
        baseline = {**others, **DSGD}
        if baseline not in baselines:
            baselines.append(baseline)
    # A grid without axes has its one point among the single ones.
    single = grid.also if grid.axes or grid.zip else every
    return points(replace(grid, also=[*single, *baselines]))


def is_dsgd(point: Point) -> bool:
    return int(point.config.workers.f) == 0


def scale_of(point: Point) -> float:
    return float(point.config.model.init_scale)


def method_of(point: Point) -> str:
    """What a run's line is called: DSGD or its clipping, and the further axes of its grid."""
    dropped = {SCALE, "seed", *DSGD} if is_dsgd(point) else {SCALE, "seed", "clip"}
    first = "DSGD" if is_dsgd(point) else _clipping(point)
    rest = {k: v for k, v in point.values.items() if k not in dropped}
    return ", ".join(part for part in (first, replace(point, values=rest).cell) if part)


def problem_of(point: Point) -> str:
    """Which data and model, where a grid has several: its further axes."""
    rest = {k: v for k, v in point.values.items() if k not in {SCALE, "seed", *DSGD}}
    return replace(point, values=rest).cell


def _clipping(point: Point) -> str:
    """A clip's name; where its arguments are axes they follow as further axes do."""
    name = str(point.config.clip.name)
    given = point.values.get("clip")
    extra = [f"{k}={v}" for k, v in given.items() if k != "name"] if isinstance(given, dict) else []
    return ", ".join([METHODS.get(name, name), *extra])


def curves(sweep: Sweep) -> Curves:
    """The accuracies of a sweep by method and scale."""
    found: dict[str, dict[float, Any]] = {}
    by_cell = accuracies(sweep)
    for point in sorted(sweep.points, key=is_dsgd):
        by_scale = found.setdefault(method_of(point), {})
        by_scale.setdefault(scale_of(point), by_cell[point.cell])
    return found


class _KeepNorms(Callback):
    """The norms of what the honest workers send in the first step."""

    def __init__(self) -> None:
        self.norms: list[float] = []

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        if not self.norms:
            self.norms = pl_module.honest.double().norm(dim=1).tolist()


def initial_gradient_norms(config: DictConfig) -> list[float]:
    """‖∇L_i(θ_1)‖ of every honest worker, over all of its data, at the initial parameters.

    One step of the training itself with full batches and no momentum, so that what the workers
    send is their gradient; nobody attacks and nothing is tracked. An ℓ2 term counts if it is the
    workers' (``train.weight_decay_mode=worker``), as it is then part of what they send.
    """
    plain = to_plain(config)
    plain["workers"]["f"] = plain["server"]["f"] = 0
    plain |= {group: {"name": DSGD[group]} for group in ("clip", "mix", "rule", "attack")}
    plain["train"] |= {"steps": 1, "full_batch": True, "momentum": 0.0, "local_steps": 1}
    plain["train"] |= {"lr_milestones": [], "lr_values": [], "checkpoint_every": 0}
    plain["tracking"]["enabled"] = False
    seen = _KeepNorms()
    train(compose(beneath=plain), callbacks=[seen])
    return seen.norms


def initial_norms(sweep: Sweep, console: Console | None = None) -> Norms:
    """The initial gradients of a computed sweep's problems, scales and seeds.

    Each is computed once: it is kept as metrics of the DSGD cell of its scale, and found there.
    """
    found: dict[str, dict[float, dict[int, InitialGradients]]] = {}
    baselines = [point for point in sweep.points if is_dsgd(point)]
    known = {
        cell: dict(sweep.store.client.get_run(sweep.cell_run(cell)).data.metrics)
        for cell in dict.fromkeys(point.cell for point in baselines)
    }
    for place, point in enumerate(baselines):
        names = [f"initial_gradient/seed_{point.seed}/{what}" for what in ("largest", "mean")]
        metrics = known[point.cell]
        if any(name not in metrics for name in names):
            if sweep.stopping:
                continue
            if console is not None:
                console.print(
                    f"initial gradients {place + 1}/{len(baselines)}: {point.label}",
                    highlight=False,
                    soft_wrap=True,
                )
            norms = initial_gradient_norms(point.config)
            for name, value in zip(names, (max(norms), sum(norms) / len(norms)), strict=True):
                metrics[name] = value
                sweep.store.client.log_metric(sweep.cell_run(point.cell), name, value)
        largest, mean = (metrics[name] for name in names)
        by_scale = found.setdefault(problem_of(point), {}).setdefault(scale_of(point), {})
        by_scale[point.seed] = InitialGradients(largest, mean)
    return found


def conclude(sweep: Sweep, norms: Norms, folder: str, *, as_json: bool = False) -> int:
    """Show and keep the study's results; returns the exit code."""
    found = curves(sweep)
    title = f"{setting(sweep.points[0].config)}: {len(sweep.points)} runs"
    picture, numbers = files(folder, "init_scaling")
    figure(found, norms, title, picture)
    numbers.write_text(as_csv(found, norms))
    powers = {problem: growth(by_scale) for problem, by_scale in norms.items()}
    metrics = {f"initial_gradient/power {p}".strip(): v for p, v in powers.items() if v is not None}
    keep(sweep, [picture, numbers], metrics)
    if as_json:
        write_json(_plain(sweep, found, norms))
        return exit_code(sweep)
    console = Console()
    console.print(as_table(found, norms, title))
    for problem, power in powers.items():
        if power is not None:
            where = f" ({problem})" if problem else ""
            console.print(f"ζ grows as μ^{power:.2f}{where}, the slope of log ζ against log μ")
    tell_saving(sweep, console)
    tell_problems(sweep, console)
    tell_where(sweep, console, picture, numbers)
    return exit_code(sweep)


def _plain(sweep: Sweep, found: Curves, norms: Norms) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for method, by_scale in found.items():
        for scale, by_attack in sorted(by_scale.items()):
            worst = worst_cases(by_attack)
            shown = None if worst is None else {"mean": worst.mean, "std": worst.std}
            rows.append({"method": method, "mu": scale, "worst_case": shown})
    gradients = [
        {"problem": problem, "mu": scale, "seed": seed}
        | {name: _finite(value) for name, value in vars(initial).items()}
        for problem, by_scale in norms.items()
        for scale, by_seed in sorted(by_scale.items())
        for seed, initial in by_seed.items()
    ]
    powers = {problem: growth(by_scale) for problem, by_scale in norms.items()}
    return {
        "worst_cases": rows,
        "initial_gradients": gradients,
        "power_of_mu": powers,
        **problems(sweep),
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
