"""What a store has of a sweep's runs, read from its database without MLflow, and compared."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

# Measured by the clock: only that they are there can be compared.
TIMED = "speed/"
RUNS = """
    select r.run_uuid, r.status, i.value, k.value, s.value from runs r
    join tags k on k.run_uuid = r.run_uuid and k.key = 'lit_byz.kind'
    join tags i on i.run_uuid = r.run_uuid and i.key = 'lit_byz.identity'
    left join tags s on s.run_uuid = r.run_uuid and s.key = 'lit_byz.status'
"""
POINTS = "select run_uuid, key, step, value, is_nan from metrics"
LATEST = "select run_uuid, key, value, is_nan from latest_metrics"
# Attempts may end so and be followed by others; the docs say when.
GIVEN_UP = ("KILLED",)

Point = tuple[str, int]


@dataclass(frozen=True)
class Entry:
    """A run as the store has it."""

    run_id: str
    status: str
    identity: str
    kind: str
    outcome: str | None  # finished or diverged, for example
    points: Mapping[Point, list[float]]
    latest: Mapping[str, float]  # what MLflow's pages show


def rows(address: str, query: str) -> list[tuple[Any, ...]]:
    engine = create_engine(address, poolclass=NullPool)
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def entries(address: str) -> list[Entry]:
    """Every run, cell and study of a store."""
    points: dict[str, dict[Point, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run_id, key, step, value, is_nan in rows(address, POINTS):
        points[run_id][key, int(step)].append(math.nan if is_nan else float(value))
    latest: dict[str, dict[str, float]] = defaultdict(dict)
    for run_id, key, value, is_nan in rows(address, LATEST):
        latest[run_id][key] = math.nan if is_nan else float(value)
    return [
        Entry(*row, points=dict(points[row[0]]), latest=latest[row[0]])
        for row in rows(address, RUNS)
    ]


@dataclass
class Verdict:
    """What a disturbed store was found to have, against an undisturbed one."""

    runs: int = 0
    points: int = 0
    lost: int = 0
    doubled: int = 0
    attempts: int = 0  # that were given up, and begun anew
    resumed: int = 0  # times that a run was gone on with
    recomputed: int = 0  # steps that were taken again
    wrong: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)

    @property
    def interrupted(self) -> int:
        """How often a run was."""
        return self.attempts + self.resumed


def compare(reference: list[Entry], found: list[Entry]) -> Verdict:
    """Look at every run and every metric of the reference."""
    verdict = Verdict()
    for kind in sorted({entry.kind for entry in [*reference, *found]} - {"run"}):
        expected = Counter(entry.status for entry in reference if entry.kind == kind)
        seen = Counter(entry.status for entry in found if entry.kind == kind)
        if seen != expected:
            verdict.wrong.append(f"{kind}: {dict(seen)}, not {dict(expected)}")
    _compare_studies(reference, found, verdict)
    known = {entry.identity: entry for entry in reference if entry.kind == "run"}
    attempts: dict[str, list[Entry]] = defaultdict(list)
    for entry in found:
        if entry.kind == "run":
            attempts[entry.identity].append(entry)
    verdict.wrong += [f"{identity}: unknown" for identity in attempts.keys() - known.keys()]
    for identity, expected_run in known.items():
        verdict.runs += 1
        _compare_run(expected_run, attempts[identity], verdict)
    return verdict


def _compare_studies(reference: list[Entry], found: list[Entry], verdict: Verdict) -> None:
    """What studies and their cells say in the end; on the way they have said other things."""
    known = {entry.identity: entry for entry in reference if entry.kind != "run"}
    for entry in found:
        if entry.kind == "run":
            continue
        name, expected = f"{entry.kind} {entry.identity[:8]}", known.get(entry.identity)
        if expected is None:
            verdict.wrong.append(f"{name}: unknown")
            continue
        verdict.points += len(expected.latest)
        verdict.lost += len(expected.latest.keys() - entry.latest.keys())
        for key, value in entry.latest.items():
            if key not in expected.latest or not _same(value, expected.latest[key]):
                told = expected.latest.get(key, "nothing")
                verdict.wrong.append(f"{name}: {key} is {value}, not {told}")


def _compare_run(expected: Entry, attempts: list[Entry], verdict: Verdict) -> None:
    name = expected.identity[:8]
    complete = [attempt for attempt in attempts if attempt.status == "FINISHED"]
    others = [attempt for attempt in attempts if attempt.status != "FINISHED"]
    verdict.attempts += len(others)
    verdict.wrong += [f"{name}: left {a.status}" for a in others if a.status not in GIVEN_UP]
    if len(complete) != 1:
        verdict.wrong.append(f"{name}: finished {len(complete)} times")
    if not complete:
        verdict.lost += len(expected.points)
        return
    run = complete[0]
    if run.outcome != expected.outcome:
        verdict.wrong.append(f"{name}: {run.outcome}, not {expected.outcome}")
    surplus = sorted(run.points.keys() - expected.points.keys())
    verdict.wrong += [f"{name}: {key} at {step} is none of its" for key, step in surplus]
    for point, (value,) in expected.points.items():
        verdict.points += 1
        seen = run.points.get(point, [])
        verdict.lost += not seen
        verdict.doubled += max(0, len(seen) - 1)
        if not point[0].startswith(TIMED) and any(not _same(value, v) for v in seen):
            verdict.wrong.append(f"{name}: {point[0]} at {point[1]} is {seen}, not {value}")


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))
