"""The mis-specified f: what the server assumes, f̂ (``server.f``), against the real f."""

from collections.abc import Sequence
from typing import Any

from lit_byz.config.grid import Grid, Point, points
from lit_byz.errors import BadRequest
from lit_byz.execution.board import Recall, nothing_known
from lit_byz.studies.grid import GridStudy

REAL, ASSUMED = "workers.f", "server.f"


class MisspecifiedStudy(GridStudy):
    """A grid whose cells are pairs of assumed and real f, for each arm."""

    def __init__(self, points: Sequence[Point], recall: Recall = nothing_known) -> None:
        super().__init__(points, recall)
        for cell in self.board.cells.values():
            point = cell.points[0]
            arm = point.without((REAL, ASSUMED)).cell
            pair = {
                "assumed": int(point.plain["server"]["f"]),
                "f": int(point.plain["workers"]["f"]),
            }
            cell.facts.update(arm=arm, **pair)


def misspecified_points(grid: Grid) -> tuple[list[Point], list[tuple[int, int]]]:
    """The runs of a grid over f̂ and f, and the pairs (f̂, f) that were left out: 2 f̂ ≥ n.

    Where f = 0 nobody attacks, and there is one run for each seed.
    """
    axes = {key: values for group in (grid.axes, *grid.zip) for key, values in group.items()}
    for key in (REAL, ASSUMED):
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
        assumed, real = values[ASSUMED], values[REAL]
        if 2 * assumed >= honest + real or 2 * real >= honest + real:
            if (assumed, real) not in left_out:
                left_out.append((assumed, real))
        elif real == 0:
            quiet = {k: v for k, v in values.items() if k.split(".")[0] != "attack"}
            kept.append({**quiet, "attack": "none"})
        else:
            kept.append(values)
    if not kept:
        raise BadRequest(f"{ASSUMED}, {REAL}: no pair has 2 f̂ < n with workers.honest = {honest}")
    return points(Grid(grid.base, also=kept, given=grid.given)), left_out


def _honest(grid: Grid) -> int:
    """The number of honest workers, from a point that is valid whatever the lists say."""
    first = {k: v for k, v in grid.values()[0].items() if k.split(".")[0] != "attack"}
    harmless = {**first, REAL: 0, ASSUMED: 0, "attack": "none"}
    return int(points(Grid(grid.base, also=[harmless]))[0].plain["workers"]["honest"])


def well_specified(point: Point) -> bool:
    """Whether the server knows: a wrong f̂ hardly changes what a step costs."""
    return bool(point.plain["server"]["f"] == point.plain["workers"]["f"])
