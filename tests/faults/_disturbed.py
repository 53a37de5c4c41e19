"""A sweep that is disturbed while it runs, and started again until it is complete."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cli import _kills
from tests.cli._studies import run
from tests.cli._sweeps import ROOT, arguments
from tests.faults import pace
from tests.faults._records import Entry, Verdict, compare, entries
from tests.faults._steps import Notes, look_at_steps
from tests.faults._tally import entry
from tests.tracking._stores import new_store, uri

GRID: dict[str, Any] = {
    "dataset": "digits",
    "model": "logreg",
    "train": {"steps": 60, "eval_every": 10, "checkpoint_every": 10},
    "trainer": {"callbacks": [f"{pace.__name__}.Pace"]},
    "grid": {"axes": {"clip": ["none", "arc"], "attack": ["sf", "mimic", "foe"]}},
}
RUNS = 6
STEPS = RUNS * 60
OWN = f"{pace.__name__},tests.data._tiny"  # modules whose classes the grids name
TABLE = "outputs/worst_case.csv"
# A sweep that has not become complete by then never will.
MOST_CALLS = 5
# Steps that runs may go on by while a fault is on its way to them.
MEANWHILE = 6
# Two runs that want to write at each of their checkpoints, and so at least every ten steps, take
# more than these only if they go on without a store.
WITHOUT_STORE = 21


@dataclass(frozen=True)
class Reference:
    """What a sweep leaves that nothing disturbs."""

    table: str
    found: list[Entry]


def undisturbed(folder: Path, grid: dict[str, Any]) -> Reference:
    """Compute a sweep in this process."""
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIT_BYZ_IMPORT", OWN)
        answer = run(folder, "sweep", grid)
    assert answer.code == 0, answer.stderr
    return Reference((folder / TABLE).read_text(), entries(uri(folder / "mlruns")))


@dataclass
class Disturbed:
    """A sweep in a folder of its own, with a store that is read from ``database``.

    Moments are counted in steps that all runs together have taken: a seeded number of them means
    the same on a slow machine. And on a fast one, or for a test that is held up itself: beyond the
    moment that is waited for runs take a few steps at most, until they are let on. No sweep is
    complete before the faults that it is to survive.
    """

    folder: Path
    grid: dict[str, Any] = field(default_factory=lambda: GRID)
    store: str | None = None
    database: str = ""
    options: Sequence[str] = ("--workers", "2")
    longest: float = 300.0  # seconds of one call, on a machine that is very busy
    seconds: float = 0.01  # that a step takes longer, so that there are moments to choose from
    environment: Mapping[str, str] = field(default_factory=dict)
    forgets: int | None = None  # steps behind a checkpoint; default: all between two of them
    codes: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    process: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.notes = Notes(self.folder.parent / f"{self.folder.name}-steps")
        self.notes.folder.mkdir(exist_ok=True)
        if self.store is None:
            self.database = self.database or new_store(self.folder / "mlruns")
        self.database = self.database or self.store or ""

    @property
    def checkpoints(self) -> Path:
        return self.folder / "mlruns" / "checkpoints"

    def start(self) -> "subprocess.Popen[bytes]":
        """Call the command, in a session of its own; each run waits after its first step."""
        assert self.process is None
        self.notes.allow(self.steps)
        where = [] if self.store is None else [f"tracking.uri={self.store}"]
        command = arguments(self.folder, *where, *self.options, grid=self.grid)
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        told = {"PYTHONPATH": paths, "LIT_BYZ_IMPORT": OWN, pace.FOLDER: str(self.notes.folder)}
        told |= {pace.SECONDS: str(self.seconds), **self.environment}
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **told},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self.process

    @property
    def _output(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-{len(self.codes)}.log")

    @property
    def output(self) -> str:
        """What the call that is on, or the last one, has said."""
        return self._output.read_text() if self.process is not None else self.said[-1]

    def wait(self, seconds: float | None = None) -> int:
        """Let the call that is on go on; its exit code, and of all its processes none left."""
        process = self.process
        assert process is not None
        self.let_go()
        try:
            code = process.wait(seconds or self.longest)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"goes on and on: {self.output[-2000:]}") from None
        _kills.wait_until(
            "all of its processes have ended", lambda: _kills.deserted(process.pid), 60
        )
        self.said.append(self.output)
        self.codes.append(code)
        self.process = None
        assert code != 2, f"refused: {self.said[-1]}"
        return code

    @property
    def steps(self) -> int:
        return self.notes.count

    def let_go(self) -> None:
        """Let runs take as many steps as they like."""
        self.notes.allow()

    def after(self, steps: int) -> bool:
        """Wait for so many more steps, while runs go on; whether the call was still on then."""
        target = self.steps + steps
        self.notes.allow(target + MEANWHILE)
        return self._wait_for(lambda: self.steps >= target)

    def held(self, steps: int) -> bool:
        """The same, and the runs that would go on wait."""
        target = self.steps + steps
        self.notes.allow(target)
        return self._wait_for(lambda: self.steps >= target and bool(self.notes.waiting()))

    def held_each(self, steps: int, runs: int = 2) -> bool:
        """Wait until so many runs have taken so many steps each, and wait."""
        self.notes.allow(each=steps)
        return self._wait_for(lambda: len(self.notes.waiting()) >= runs)

    def _wait_for(self, moment: Callable[[], bool]) -> bool:
        process = self.process
        assert process is not None
        deadline = time.monotonic() + self.longest
        while not moment():
            if process.poll() is not None:
                return False
            assert time.monotonic() < deadline, f"no more steps: {self.output[-2000:]}"
            time.sleep(0.005)
        return process.poll() is None

    def send(self, number: int) -> None:
        """Send a signal to all processes of the call that is on."""
        assert self.process is not None
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """Kill -9 them, and wait for their end."""
        self.send(signal.SIGKILL)
        self.wait()

    def complete(self) -> None:
        """Call the same command until it says that all is done."""
        for _ in range(MOST_CALLS):
            if self.process is None:
                self.start()
            if self.wait() == 0:
                return
        raise AssertionError(f"never complete: {self.codes}, {self.said[-1][-3000:]}")

    def compare(self, reference: Reference) -> Verdict:
        """What the complete sweep has, run by run, metric by metric, and its table."""
        found = entries(self.database)
        verdict = compare(reference.found, found)
        given_up = [e.run_id for e in found if e.kind == "run" and e.status != "FINISHED"]
        every = self.grid["train"]["checkpoint_every"]
        forgets = every if self.forgets is None else self.forgets
        look_at_steps(self.notes.steps(), given_up, forgets, verdict)
        if (self.folder / TABLE).read_text() != reference.table:
            verdict.wrong.append(f"another table: {(self.folder / TABLE).read_text()}")
        left = [*self.checkpoints.glob("*/*")] if self.checkpoints.exists() else []
        verdict.wrong += [f"left: {path.relative_to(self.folder)}" for path in left]
        return verdict


@contextlib.contextmanager
def cleaned_up(*sweeps: Disturbed) -> Iterator[None]:
    """Leave no process behind, whatever a test finds."""
    try:
        yield
    finally:
        for sweep in sweeps:
            if sweep.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(sweep.process.pid, signal.SIGCONT)
                    os.killpg(sweep.process.pid, signal.SIGKILL)
                sweep.process.wait()


Judge = Callable[[str, int, Disturbed, Reference], Verdict]


def judge(request: pytest.FixtureRequest) -> Judge:
    """Count what a test has done and found, then fail if anything is not as it should be."""

    def judged(kind: str, faults: int, sweep: Disturbed, reference: Reference) -> Verdict:
        verdict = sweep.compare(reference)
        request.node.user_properties.append(entry(kind, faults, verdict))
        assert verdict.sound, verdict
        return verdict

    return judged


def chance(request: pytest.FixtureRequest) -> random.Random:
    """Seeded by the test's name: moments differ from test to test, not from call to call."""
    return random.Random(request.node.name)
