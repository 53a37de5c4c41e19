"""The mis-specified f: what the server declares, f̂ (``server.f``), against the real f."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lit_byz.errors import BadRequest
from lit_byz.experiment.conclusion import accuracies
from lit_byz.experiment.grid import Grid, Point, points
from lit_byz.experiment.sweep import Sweep
from lit_byz.report.breakdown import Matrix
from lit_byz.report.worst_case_table import Summary, worst_cases

REAL, DECLARED = "workers.f", "server.f"


def declared_points(grid: Grid) -> tuple[list[Point], list[tuple[int, int]]]:
    """The runs of a grid over f̂ and f, and the pairs (f̂, f) that were left out: 2 f̂ ≥ n.

    Where f = 0 nobody attacks, and there is one run for each seed.
    """
    axes = {key: values for group in (grid.axes, *grid.zip) for key, values in group.items()}
    for key in (REAL, DECLARED):
        if key not in axes:
            raise BadRequest(f"--declared needs lists of both: {key}=[1,2,3] is missing")
        for value in axes[key]:
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise BadRequest(f"{key} = {value!r}: must be a whole number, at least 0")
    if "workers.honest" in axes:
        raise BadRequest("workers.honest: must be one value here, not a list")
    honest = _honest(grid)
    kept: list[dict[str, Any]] = []
    left_out: list[tuple[int, int]] = []
    for values in grid.values():
        declared, real = values[DECLARED], values[REAL]
        if 2 * declared >= honest + real or 2 * real >= honest + real:
            if (declared, real) not in left_out:
                left_out.append((declared, real))
        elif real == 0:
            quiet = {k: v for k, v in values.items() if k.split(".")[0] != "attack"}
            kept.append({**quiet, "attack": "none"})
        else:
            kept.append(values)
    if not kept:
        raise BadRequest(f"{DECLARED}, {REAL}: no pair has 2 f̂ < n with workers.honest = {honest}")
    return points(Grid(grid.base, also=kept)), left_out


def _honest(grid: Grid) -> int:
    """The number of honest workers, from a point that is valid whatever the lists say."""
    first = {k: v for k, v in next(grid.values()).items() if k.split(".")[0] != "attack"}
    harmless = {**first, REAL: 0, DECLARED: 0, "attack": "none"}
    return int(points(Grid(grid.base, also=[harmless]))[0].config.workers.honest)


def well_declared(point: Point) -> bool:
    """Whether the server knows: a wrong f̂ hardly changes what a step costs."""
    return int(point.config.server.f) == int(point.config.workers.f)


def arm_of(point: Point) -> str:
    """What a run's arm is called: its cell without both f."""
    rest = {key: value for key, value in point.values.items() if key not in (REAL, DECLARED)}
    return replace(point, values=rest).cell


def matrices(sweep: Sweep) -> Mapping[str, Matrix]:
    """Each arm's worst cases by f̂ and f; pairs with missing runs are left out."""
    found: dict[str, dict[tuple[int, int], Summary]] = {}
    results = accuracies(sweep)
    for point in sweep.points:
        matrix = found.setdefault(arm_of(point), {})
        worst = worst_cases(results[point.cell])
        if worst is not None:
            matrix[int(point.config.server.f), int(point.config.workers.f)] = worst
    return found
