"""Norms of the honest workers' initial gradients, by the scale of the initial parameters, μ."""

import math
import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lit_byz.tracking.records import CellResult, PlannedRun, StudyResult

# The kind of the cells that are about them.
KIND = "initial_gradients"
# What they are called in files of numbers, and in pandas' tables.
COLUMNS = {"largest": "initial_gradient_largest", "mean": "initial_gradient_mean"}


@dataclass(frozen=True)
class InitialGradients:
    """Norms of the honest workers' gradients at the initial parameters.

    ``largest`` is the theorem's ζ, the maximum over the workers; ``mean`` their mean.
    """

    largest: float
    mean: float


# Problem (data and model, "" where there is one) to μ to seed.
Norms = Mapping[str, Mapping[float, Mapping[int, InitialGradients]]]


def norms_of(result: StudyResult) -> Norms:
    """The initial gradients by problem, scale and seed."""
    found: dict[str, dict[float, dict[int, InitialGradients]]] = {}
    for cell in result.of_kind(KIND):
        for run in cell.record.runs:
            if (norms := norms_of_run(cell, run)) is not None:
                by_scale = found.setdefault(cell.facts["problem"], {})
                by_scale.setdefault(cell.facts["scale"], {})[run.seed] = norms
    return found


def norms_of_run(cell: CellResult, run: PlannedRun) -> InitialGradients | None:
    """What a run found of them; None unless it was made for that, and has."""
    metrics = cell.metrics.get(run.identity, {}) if cell.record.kind == KIND else {}
    if "honest/max_norm" in metrics and "honest/average_norm" in metrics:
        return InitialGradients(metrics["honest/max_norm"], metrics["honest/average_norm"])
    return None


def norms_by_cell(result: StudyResult) -> dict[str, InitialGradients]:
    """The means over the seeds that belong to each cell, by its name: of its problem and μ."""
    norms = norms_of(result)
    problems = {cell.facts["problem"]: None for cell in result.of_kind(KIND)}
    found = {}
    for cell in result.cells:
        facts = cell.facts
        problem = facts["problem"] if "problem" in facts else _problem_of(facts["method"], problems)
        mean = mean_of(norms.get(problem, {}).get(facts["scale"], {}).values())
        if mean is not None:
            found[cell.name] = mean
    return found


def _problem_of(method: str, problems: Iterable[str]) -> str:
    """Which problem a method's name speaks of, as it has the further axes of its grid in it.

    >>> _problem_of("ARC, rule=gm, model=mlp", ["", "model=mlp", "model=cnn"])
    'model=mlp'
    """
    parts = _parts(method)
    return max((each for each in problems if _parts(each) <= parts), key=len, default="")


def _parts(name: str) -> set[str]:
    # A value may have commas in brackets of its own.
    return set(re.split(r", (?=[A-Za-z_][\w.]*=)", name)) - {""}


def mean_of(norms: Iterable[InitialGradients]) -> InitialGradients | None:
    """The mean over the seeds of either norm."""
    found = list(norms)
    if not found:
        return None
    largest, mean = ([getattr(each, name) for each in found] for name in COLUMNS)
    return InitialGradients(statistics.fmean(largest), statistics.fmean(mean))


def columns_of(norms: InitialGradients | None) -> dict[str, float]:
    """Both norms as columns of a table; missing where there are none."""
    return {column: getattr(norms, name, math.nan) for name, column in COLUMNS.items()}


def growth(by_scale: Mapping[float, Mapping[int, InitialGradients]]) -> float | None:
    """The power of μ that fits ζ best: the slope of log ζ (mean over seeds) against log μ."""
    points = [
        (math.log(scale), statistics.fmean(math.log(found.largest) for found in by_seed.values()))
        for scale, by_seed in by_scale.items()
        if by_seed and all(0 < found.largest < math.inf for found in by_seed.values())
    ]
    if len(points) < 2:
        return None
    return statistics.linear_regression(*zip(*points, strict=True)).slope
