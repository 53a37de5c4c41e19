"""Stores that go away while a sweep runs, and come back."""

import random
import time
from pathlib import Path

import pytest

from tests.faults._disturbed import Disturbed, Judge, Reference, cleaned_up
from tests.services._mlflow_server import MlflowServer
from tests.services._postgresql import PostgreSQL

pytestmark = pytest.mark.services


def test_postgresql(
    postgres: PostgreSQL,
    database: str,
    tmp_path: Path,
    reference: Reference,
    judge: Judge,
    chance: random.Random,
) -> None:
    sweep = Disturbed(tmp_path / "sweep", store=database)
    with cleaned_up(sweep):
        sweep.start()
        for _ in range(3):
            assert sweep.after(chance.randrange(20, 80))
            postgres.crash()
            time.sleep(chance.uniform(0.0, 4.0))
            postgres.start()
        sweep.complete()
    judge("PostgreSQL crashes", 3, sweep, reference)
    assert sweep.codes == [0], sweep.said  # it has waited


def test_server(
    server: MlflowServer,
    database: str,
    tmp_path: Path,
    reference: Reference,
    judge: Judge,
    chance: random.Random,
) -> None:
    sweep = Disturbed(tmp_path / "sweep", store=server.address, database=database)
    with cleaned_up(sweep):
        sweep.start()
        for _ in range(2):
            assert sweep.after(chance.randrange(20, 100))
            server.kill()
            time.sleep(chance.uniform(0.0, 4.0))
            server.start()
        sweep.complete()
    judge("kill -9 of the MLflow server", 2, sweep, reference)
    assert sweep.codes == [0], sweep.said


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
    with cleaned_up(sweep):
        sweep.start()
        for _ in range(2):
            assert sweep.after(chance.randrange(20, 100))
            postgres.crash()
            time.sleep(chance.uniform(0.0, 4.0))
            postgres.start()
        sweep.complete()
    judge("PostgreSQL crashes behind a server", 2, sweep, reference)
    assert sweep.codes == [0], sweep.said


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
        sweep.start()
        assert sweep.wait() == 1
        assert "cannot be opened" in sweep.output
        server.start()
        sweep.complete()
    judge("a store that stays away", 2, sweep, reference)
