"""Processes that are held up for longer than their lease, while another sweep takes their runs."""

import os
import random
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faults._clock import Clock
from tests.faults._disturbed import STEPS, Disturbed, Judge, Reference, cleaned_up
from tests.faults._records import entries
from tests.services._mlflow_server import MlflowServer

pytestmark = [pytest.mark.services, pytest.mark.timeout(900)]

SHORT = {"LIT_BYZ_LEASE": "8"}  # seconds, which nobody else claims from those who are on
HOURS = 5 * 3600


def on_two_machines(
    folder: Path, address: str, database: str, environment: Mapping[str, str]
) -> tuple[Disturbed, Disturbed]:
    """The same sweep twice; nothing but the store tells them of each other."""
    first, second = (
        Disturbed(
            folder / name,
            store=address,
            database=database,
            environment=environment,
            options=("--workers", "1"),
        )
        for name in ("first", "second")
    )
    return first, second


@pytest.mark.parametrize(
    ("held_up", "store"), [("all of it", "database"), ("a run's process", "server")]
)
def test_stopped(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    database: str,
    reference: Reference,
    judge: Judge,
    chance: random.Random,
    held_up: str,
    store: str,
) -> None:
    """SIGSTOP, as a machine that sleeps does it; what wakes up must not write any more."""
    found = request.getfixturevalue(store)
    address = found.address if isinstance(found, MlflowServer) else database
    first, second = on_two_machines(tmp_path, address, database, SHORT)
    first.forgets = 60  # its checkpoints are where the other one is not
    with cleaned_up(first, second):
        first.start()
        assert first.held(chance.randrange(15, 50))
        stopped = first.notes.waiting()
        if held_up == "all of it":
            first.send(signal.SIGSTOP)
        else:
            os.kill(stopped[0], signal.SIGSTOP)
        second.start()
        assert second.wait() == 0
        before = entries(database)
        for number in stopped:
            os.kill(number, signal.SIGCONT)
        first.send(signal.SIGCONT)
        assert first.wait() in (0, 1)
        after = entries(database)
        assert [run for run in after if run.kind == "run"] == [
            run for run in before if run.kind == "run"
        ]
        first.complete()
    verdict = first.compare(reference)
    assert verdict.sound, verdict
    judge(f"SIGSTOP beyond the lease: {held_up}", 1, second, reference)


def test_clocks_that_differ(
    tmp_path: Path, database: str, reference: Reference, judge: Judge
) -> None:
    """Two machines, hours apart by their clocks, share the work, and neither robs the other."""
    first, second = on_two_machines(tmp_path, database, database, {})
    clock = Clock(tmp_path / "clock")
    clock.jump(HOURS)
    second.environment = clock.environment
    with cleaned_up(first, second):
        first.start()
        second.start()
        second.let_go()  # before the first, which may have to wait for a run of it
        assert [first.wait(), second.wait()] == [0, 0], first.said + second.said
    verdict = first.compare(reference)
    assert verdict.sound, verdict
    verdict = judge("clocks that differ by hours", 1, second, reference)
    assert verdict.interrupted == 0
    assert first.steps + second.steps == STEPS
