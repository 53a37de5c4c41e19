"""Model initialisation: worst cases and initial gradients as all initial parameters grow by μ.

The runs are a grid's over clip, μ, attack and seed; beside them Byzantine-free DSGD for each μ and
seed, and for its initial gradients one step of training with all data, no momentum and no attack.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lit_byz.config.compose import compose_plain
from lit_byz.config.grid import Grid, Point, points
from lit_byz.config.identity import identify
from lit_byz.execution.board import Recall, nothing_known
from lit_byz.studies.grid import GridStudy, WorstCaseStudy

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
GRADIENTS = "initial gradients"
# The kind of the cells that are about them.
INITIAL = "initial_gradients"


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


def gradient_point(dsgd: Point) -> Point:
    """One run of one step for the initial gradients of a scale and seed.

    With full batches and no momentum the workers send their gradients ∇L_i(θ_1) over all of their
    data. An ℓ2 term counts if it is the workers' (``train.weight_decay_mode=worker``), as it is
    then part of what they send.
    """
    train = {**dsgd.plain["train"], "steps": 1, "full_batch": True, "momentum": 0.0}
    train |= {"local_steps": 1, "lr_milestones": [], "lr_values": [], "gradients": "loop"}
    plain = compose_plain(beneath={**dsgd.plain, "train": train})
    parts = [GRADIENTS, problem_of(dsgd), f"μ={scale_of(dsgd):g}"]
    title = ", ".join(part for part in parts if part)
    return Point({"attack": "none"}, plain, identify(plain), title)


def make_init_scaling(
    found: Sequence[Point], *, worst_case_only: bool = False, recall: Recall = nothing_known
) -> GridStudy:
    """The grid, then the initial gradients."""
    study = (WorstCaseStudy if worst_case_only else GridStudy)(found, recall)
    for cell in study.board.cells.values():
        point = cell.points[0]
        cell.facts.update(method=method_of(point), scale=scale_of(point))
    baselines = [point for point in found if is_dsgd(point)]
    made = [gradient_point(point) for point in baselines]
    study.board.add(made, INITIAL)
    for baseline, point in zip(baselines, made, strict=True):
        study.board.say(point.cell, problem=problem_of(baseline), scale=scale_of(baseline))
    return study


def is_dsgd(point: Point) -> bool:
    """Whether nobody attacks: the baseline."""
    return bool(point.plain["workers"]["f"] == 0)


def scale_of(point: Point) -> float:
    """A run's μ."""
    return float(point.plain["model"]["init_scale"])


def method_of(point: Point) -> str:
    """What a run's line is called: DSGD or its clipping, and the further axes of its grid."""
    dropped = [SCALE, "seed", *DSGD] if is_dsgd(point) else [SCALE, "seed", "clip"]
    first = "DSGD" if is_dsgd(point) else _clipping(point)
    return ", ".join(part for part in (first, point.without(dropped).cell) if part)


def problem_of(point: Point) -> str:
    """Which data and model, where a grid has several: its further axes."""
    return point.without((SCALE, "seed", *DSGD)).cell


def _clipping(point: Point) -> str:
    """A clip's name, and its arguments; where these are axes they follow as further axes do."""
    clip = dict(point.plain["clip"])
    name = str(clip.pop("name"))
    given = {} if name in METHODS else clip
    extra = [f"{k}={v}" for k, v in given.items() if f"clip.{k}" not in point.values]
    return ", ".join([METHODS.get(name, name), *extra])
