"""Stores that go away while a sweep runs, and come back."""

import random
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.faults._disturbed import (
    STEPS,
    WITHOUT_STORE,
    Disturbed,
    Judge,
    Reference,
    cleaned_up,
)
from tests.faults._records import Verdict
from tests.services._mlflow_server import MlflowServer
from tests.services._postgresql import PostgreSQL

pytestmark = [pytest.mark.services, pytest.mark.timeout(900)]

Away = Callable[[], AbstractContextManager[None]]


def survives(sweep: Disturbed, away: Away, times: int, chance: random.Random) -> None:
    """A sweep whose store goes away so many times, each for a while."""
    with cleaned_up(sweep):
        sweep.start()
        # One run at least is in the first half of its steps, for which it needs no store.
        assert sweep.held(chance.randrange(5, 30))
        with away():
            assert sweep.after(WITHOUT_STORE)
        for _ in range(times - 1):
            assert sweep.after(chance.randrange(20, 80))
            with away():
                time.sleep(chance.uniform(0.0, 3.0))
        sweep.complete()


def nothing_is_lost(sweep: Disturbed, verdict: Verdict) -> None:
    """It has waited, and said so, and no step was taken twice."""
    assert sweep.codes == [0], sweep.said
    assert "store away since" in sweep.output
    assert "store back after" in sweep.output
    assert verdict.interrupted == 0
    assert sweep.steps == STEPS


def test_postgresql(
    postgres: PostgreSQL,
    database: str,
    tmp_path: Path,
    reference: Reference,
    judge: Judge,
    chance: random.Random,
) -> None:
    sweep = Disturbed(tmp_path / "sweep", store=database)
    survives(sweep, postgres.away, 3, chance)
    nothing_is_lost(sweep, judge("PostgreSQL crashes", 3, sweep, reference))


def test_server(
    server: MlflowServer,
    database: str,
    tmp_path: Path,
    reference: Reference,
    judge: Judge,
    chance: random.Random,
) -> None:
    sweep = Disturbed(tmp_path / "sweep", store=server.address, database=database)
    survives(sweep, server.away, 2, chance)
    nothing_is_lost(sweep, judge("kill -9 of the MLflow server", 2, sweep, reference))


def test_database_behind_a_server(
    postgres: PostgreSQL,
    server: MlflowServer,
    database: str,
    tmp_path: Path,
    reference: Reference,
    judge: Judge,
    chance: random.Random,
) -> None:
    sweep = Disturbed(tmp_path / "sweep", store=server.address, database=database)
    survives(sweep, postgres.away, 2, chance)
    nothing_is_lost(sweep, judge("PostgreSQL crashes behind a server", 2, sweep, reference))


def test_longer_than_anybody_waits(
    server: MlflowServer,
    database: str,
    tmp_path: Path,
    reference: Reference,
    judge: Judge,
    chance: random.Random,
) -> None:
    """The sweep gives up, in one line; the same command goes on once the store is back."""
    options = ("--workers", "2", "tracking.patience=3")
    sweep = Disturbed(tmp_path / "sweep", store=server.address, database=database, options=options)
    with cleaned_up(sweep):
        sweep.start()
        assert sweep.after(chance.randrange(40, 150))
        server.kill()
        assert sweep.wait() == 1
        assert "Traceback" not in sweep.output
        last = sweep.output.splitlines()[-1]
        assert re.match(rf"error: tracking\.uri = {server.address}: away since \S+ \(.*\); ", last)
        assert re.search(r"the same command goes on: python \S+sweep\.py config=\S+", last)
        sweep.start()
        assert sweep.wait() == 1
        assert "cannot be opened" in sweep.output
        server.start()
        sweep.complete()
    assert judge("a store that stays away", 2, sweep, reference).interrupted <= 2
