"""The studies as Python functions: what the commands compute, as pandas tables.

They take the settings of the commands, go through the same code, and leave the same runs in the
store, so that a command goes on with what a function began, and the other way round.
"""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lit_byz._quiet import for_a_while
from lit_byz._warn import warn
from lit_byz.cli import saying
from lit_byz.config.as_typed import as_typed
from lit_byz.errors import RunFailed

if TYPE_CHECKING:
    from lit_byz.config.grid import Point
    from lit_byz.execution.runner import Runner
    from lit_byz.report.frames import StudyFrame
    from lit_byz.tracking.records import StudyResult

INTERRUPTED = 130

Settings = Iterable[str] | Mapping[str, Any]


def sweep(
    settings: Settings = (),
    *,
    worst_case_only: bool = False,
    workers: int | None = None,
    executor: str = "processes",
    ray_address: str | None = None,
    retry_failed: bool = False,
    progress: bool = False,
) -> "StudyFrame":
    """Run a whole attack grid; returns a row per cell with its worst-case maximal accuracy.

    ``settings`` are those of ``lit-byz sweep``: a list of ``key=value`` texts, or a mapping in
    which a list makes an axis of the grid, as in ``{"clip": ["none", "arc"], "seed": [1, 2]}``. The
    table has the columns ``worst_case`` and ``std`` over the seeds, ``at_least`` and ``at_most``,
    and ``status``: exact, or which bound is known where runs failed, are missing or were stopped;
    ``last_accuracy`` and ``mean_last_5`` are the worst cases of the last evaluation and of the mean
    of the last five, with ``_std`` and ``_at_most`` beside them. Its attributes ``runs``, ``cells``
    and ``run_id`` have the rest. Failed runs are warned of.

    The same call again goes on where the last one stopped. Ctrl-C lets the runs that are on save
    themselves and then raises ``KeyboardInterrupt``. Nothing is printed unless ``progress``.
    """
    return _study("sweep", settings, locals())


def init_scaling(
    settings: Settings = (),
    *,
    worst_case_only: bool = False,
    workers: int | None = None,
    executor: str = "processes",
    ray_address: str | None = None,
    retry_failed: bool = False,
    progress: bool = False,
) -> "StudyFrame":
    """Worst cases as the initial parameters are multiplied by μ; a row per method and μ.

    Arguments and table are as those of :func:`sweep`. ``initial_gradient_largest`` (ζ) and
    ``initial_gradient_mean`` are norms of the honest workers' initial gradients at that μ, means
    over the seeds; ``runs`` has them by seed.
    """
    return _study("init_scaling", settings, locals())


def tune(
    settings: Settings = (),
    *,
    trials: int | None = None,
    study: str | None = None,
    storage: str | None = None,
    workers: int | None = None,
    executor: str = "processes",
    ray_address: str | None = None,
    retry_failed: bool = False,
    progress: bool = False,
) -> "StudyFrame":
    """Tune a cell against its worst attack; a row per trial, and one per cell to compare with.

    ``trials`` is the study's total. A trial that was pruned has the status "at most". Other
    arguments are as those of :func:`sweep`.
    """
    return _study("tune", settings, locals())


def breakdown(
    settings: Settings = (),
    *,
    threshold: float | None = None,
    max_f: int | None = None,
    full: bool = False,
    decide_only: bool = False,
    declared: bool = False,
    workers: int | None = None,
    executor: str = "processes",
    ray_address: str | None = None,
    retry_failed: bool = False,
    progress: bool = False,
) -> "StudyFrame":
    """The smallest f at which the worst case falls below a threshold; a row per arm.

    ``breakdown_f`` is missing where an arm holds up to ``max_f``, and where it is not ``decided``.
    With ``declared`` there is a row for every pair of declared and real f instead. Other arguments
    are as those of :func:`sweep`; the worst cases that were found are in ``cells``.
    """
    return _study("breakdown", settings, locals())


def _study(command: str, settings: Settings, options: Mapping[str, Any]) -> "StudyFrame":
    """Go through a command as if its arguments had been typed, and take what it came to."""
    from lit_byz.report.frames import StudyFrame

    received: list[tuple[StudyResult, Runner]] = []
    words = [*as_typed(settings), *_flags(options)]
    module = importlib.import_module(f"lit_byz.cli.{command}")
    saying.quietly(not options["progress"])
    with for_a_while():
        code = module.run(words, lambda result, runner: received.append((result, runner)))
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if not received:
        raise RunFailed(f"{command}: ended with code {code}, and without a result")
    result, runner = received[-1]
    if result.failed or result.missing:
        counts = f"{len(result.failed)} failed, {len(result.missing)} missing"
        where = "see the columns status and error of .runs"
        warn(f"{command}: not all runs have a result ({counts}): {where}")
    if result.record.kind == "tuning" and all(cell.judged_on == "test" for cell in result.cells):
        warn("tune: trials are judged on the test images; data.validation=0.1 holds others out")
    outcomes = runner.board.outcomes
    errors = {identity: outcome.error for identity, outcome in outcomes.items() if outcome.error}
    return StudyFrame.of(result, _axes(runner), errors)


def _axes(runner: "Runner") -> dict[str, dict[str, Any]]:
    """The values that each cell has of all keys by which the study's cells differ."""
    points = {name: cell.points[0] for name, cell in runner.board.cells.items()}
    keys = dict.fromkeys(key for point in points.values() for key in point.values)
    return {
        name: {k: v for k in keys if not _is_inner(k) and (v := _value(point, k)) is not None}
        for name, point in points.items()
    }


def _value(point: "Point", key: str) -> Any:
    """What stands for a key in a cell's name, or what it has by itself; None if it has no such."""
    if key in point.values:
        return point.values[key]
    section, _, name = key.partition(".")
    found = point.plain.get(section)
    return found.get(name or "name") if isinstance(found, Mapping) else found


def _is_inner(key: str) -> bool:
    """Whether a cell is taken over the values of a key."""
    return key.partition(".")[0] in ("attack", "seed")


def _flags(options: Mapping[str, Any]) -> Iterator[str]:
    """A function's arguments as a command's options."""
    yield f"--progress={'auto' if options['progress'] else 'none'}"
    for name, value in options.items():
        if name in ("settings", "progress") or value is None or value is False:
            continue
        flag = f"--{name.replace('_', '-')}"
        yield flag if value is True else f"{flag}={value}"
