"""Before and after a breakdown study: its plan, and its tables, figures and files."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from lit_byz.experiment.breakdown import Breakdown
from lit_byz.experiment.declared import matrices
from lit_byz.experiment.study import (
    duration,
    exit_code,
    files,
    keep,
    problems,
    setting,
    tell_problems,
    tell_where,
    write_json,
)
from lit_byz.experiment.sweep import Sweep
from lit_byz.report import breakdown as report


def plan(study: Breakdown, *, full: bool = False) -> str:
    """The size of the search and of the full grid; costs are measured at the middle f."""
    from lit_byz.experiment.estimate import estimate

    everything = study.grid_points
    per_probe = max(len(at_f) for arm in study.arms.values() for at_f in arm.by_f.values())
    middle = [p for arm in study.arms.values() for p in arm.by_f[(1 + arm.search.most) // 2]]
    probes = study.most.bit_length()
    lines = [
        f"{len(study.arms)} arms, f from 1 to {study.most}, {per_probe} runs a probe "
        f"(attacks x seeds)",
        f"bisection: at most {probes} probes an arm, {study.most_runs()} runs; "
        f"full grid: {len(everything)} runs",
    ]
    cost = estimate(middle).seconds / len(middle)
    search, grid = (duration(cost * count) for count in (study.most_runs(), len(everything)))
    lines.append(
        f"estimated from a few measured steps at the middle f: at most {search} of one process as "
        f"this one, full grid {grid}{' (--full computes it)' if full else ''}"
    )
    return "\n".join(lines)


def conclude(study: Breakdown, full: Sweep | None, folder: str, *, as_json: bool = False) -> int:
    """Show and keep what the search found, beside the full grid's answer; the exit code."""
    arms = study.answers(full)
    used, whole = study.count_runs(), len(study.grid_points)
    config = study.grid_points[0].config
    honest = int(config.workers.honest)
    title = f"{setting(config)}: {used} runs, full grid {whole}"
    picture, numbers = files(folder, "breakdown")
    report.figure(arms, study.most, study.threshold, title, picture)
    numbers.write_text(report.as_csv(arms))
    found = {f"breakdown/{name or 'f'}": arm.breakdown for name, arm in arms.items()}
    keep(study, [picture, numbers], {k: float(v) for k, v in found.items() if v is not None})
    sweeps = [study] if full is None else [study, full]
    code = max(exit_code(sweep) for sweep in sweeps)
    if as_json:
        write_json(_plain(study, arms, full, code))
        return code
    console = Console()
    console.print(report.table(arms, study.most, study.threshold, title))
    for name, arm in arms.items():
        where = report.answer(arm.breakdown, arm.decided, study.most)
        if arm.breakdown is not None:
            where = f"breaks down at {where} of {honest + arm.breakdown} workers"
        console.print(f"{name or 'one arm'}: {where}", highlight=False)
    share = 100 * used / whole
    console.print(f"bisection: {used} runs, {share:.0f} % of the full grid's {whole}")
    if full is not None:
        console.print(_comparison(arms), highlight=False)
    for sweep in sweeps:
        tell_problems(sweep, console)
    tell_where(study, console, picture, numbers)
    return code


def _comparison(arms: report.Arms) -> str:
    if any(arm.scanned is None or not arm.decided for arm in arms.values()):
        return "full grid: incomplete"
    scans = {name: arm.scanned for name, arm in arms.items() if arm.scanned is not None}
    other = [name or "one arm" for name, s in scans.items() if s.breakdown != arms[name].breakdown]
    if not other:
        return "full grid: the same answer for every arm"
    return f"full grid: another answer for {', '.join(other)}: not monotone in f"


def _plain(study: Breakdown, arms: report.Arms, full: Sweep | None, code: int) -> dict[str, Any]:
    found = []
    for name, arm in arms.items():
        entry: dict[str, Any] = {
            "arm": name,
            "breakdown_f": arm.breakdown,
            "decided": arm.decided,
            "levels": {str(f): vars(level) for f, level in sorted(arm.levels.items())},
        }
        if arm.scanned is not None:
            entry["full_grid"] = {
                "breakdown_f": arm.scanned.breakdown,
                "monotone": arm.scanned.monotone,
                "levels": {str(f): vars(level) for f, level in arm.scanned.levels.items()},
            }
        found.append(entry)
    trouble = problems(study)
    if full is not None:
        trouble["failed"] |= problems(full)["failed"]
        trouble["missing"] += problems(full)["missing"]
    return {
        "arms": found,
        "threshold": study.threshold,
        "max_f": study.most,
        "runs_used": study.count_runs(),
        "runs_full_grid": len(study.grid_points),
        **trouble,
        "exit_code": code,
    }


def conclude_declared(
    sweep: Sweep, left_out: Sequence[tuple[int, int]], folder: str, *, as_json: bool = False
) -> int:
    """Show and keep the worst cases by declared and real f; returns the exit code."""
    found = matrices(sweep)
    title = f"{setting(sweep.points[0].config)}: {len(sweep.points)} runs"
    picture, numbers = files(folder, "declared")
    report.declared_figure(found, title, picture)
    numbers.write_text(report.declared_csv(found))
    keep(sweep, [picture, numbers], {})
    if as_json:
        arms = [
            {
                "arm": name,
                "worst_cases": [
                    {"declared_f": declared, "f": real, "mean": s.mean, "std": s.std}
                    for (declared, real), s in sorted(matrix.items())
                ],
            }
            for name, matrix in found.items()
        ]
        write_json({"arms": arms, "left_out": [list(p) for p in left_out], **problems(sweep)})
        return exit_code(sweep)
    console = Console()
    console.print(report.declared_table(found, title))
    tell_left_out(left_out, console)
    tell_problems(sweep, console)
    tell_where(sweep, console, picture, numbers)
    return exit_code(sweep)


def tell_left_out(left_out: Sequence[tuple[int, int]], console: Console) -> None:
    if left_out:
        pairs = ", ".join(f"(f̂={declared}, f={real})" for declared, real in left_out)
        console.print(
            f"left out, for want of 2 f̂ < n and 2 f < n: {pairs}", highlight=False, soft_wrap=True
        )
