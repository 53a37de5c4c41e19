"""The steps that a sweep's processes note, how many they may take, and where runs went on."""

import math
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.faults import pace
from tests.faults._records import Verdict


@dataclass(frozen=True)
class Step:
    """One step of a run, and the process that took it."""

    at: float
    run_id: str
    number: int
    process: int


@dataclass(frozen=True)
class Notes:
    """The folder in which :class:`tests.faults.pace.Pace` notes steps, and finds its gate."""

    folder: Path

    @property
    def count(self) -> int:
        return pace.steps_in(self.folder)

    def steps(self) -> list[Step]:
        """All of them, in the order in which they were taken."""
        found = []
        for path in self.folder.iterdir():
            if path.name.isdigit():
                for line in path.read_text().splitlines():
                    run_id, number, at = line.split()
                    found.append(Step(float(at), run_id, int(number), int(path.name)))
        return sorted(found, key=lambda step: step.at)

    def computing(self) -> list[int]:
        """The processes that have computed a step, and live, those that take steps now first."""
        notes = [path for path in self.folder.iterdir() if path.name.isdigit()]
        notes.sort(key=lambda path: -path.stat().st_mtime)
        return [int(path.name) for path in notes if _lives(path.name)]

    def waiting(self) -> list[int]:
        """The processes that wait at the gate."""
        signs = self.folder.glob(f"*{pace.WAITS}")
        return [int(sign.stem) for sign in signs if _lives(sign.stem)]

    def allow(self, together: float = math.inf, each: float = math.inf) -> None:
        """Let all runs together, and each of them, take so many steps in all, and then wait."""
        new = self.folder / "gate.new"
        new.write_text(f"{together} {each} {os.getpid()}")
        new.replace(self.folder / pace.GATE)


def _lives(process: str) -> bool:
    return Path(f"/proc/{process}").exists()


def look_at_steps(
    steps: Iterable[Step], given_up: Collection[str], forgets: int, verdict: Verdict
) -> None:
    """See that every run went on from its last checkpoint, wherever it was interrupted.

    ``forgets`` are the most steps that can lie behind it. A run with more of them has a checkpoint:
    it is not one of those that were ``given_up``.
    """
    last: dict[str, Step] = {}
    for step in steps:
        before = last.get(step.run_id)
        reached = 0 if before is None else before.number
        if before is not None and (step.process, step.number) == (before.process, reached):
            continue  # the model was lost: nothing came of the step
        again = reached + 1 - step.number
        if not 0 <= again <= forgets:
            verdict.wrong.append(f"{step.run_id}: step {step.number} came after {reached}")
        verdict.resumed += before is not None and (again > 0 or step.process != before.process)
        verdict.recomputed += max(0, again)
        last[step.run_id] = step
    for run_id in last.keys() & set(given_up):
        reached = last[run_id].number
        verdict.recomputed += reached
        if reached > forgets:
            verdict.wrong.append(f"{run_id}: given up after {reached} steps")
