"""Faults: the sweep that nothing disturbs, services that can be crashed, and what is counted."""

import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.faults import _disturbed
from tests.faults._disturbed import GRID, Judge, Reference, undisturbed
from tests.services._mlflow_server import MlflowServer, mlflow_server
from tests.services._postgresql import PostgreSQL, postgresql

TEMPLATE = "furnished"
NUMBERS = count()


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return undisturbed(tmp_path_factory.mktemp("undisturbed"), GRID)


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Judge:
    return _disturbed.judge(request)


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    return _disturbed.chance(request)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgreSQL]:
    """PostgreSQL, with a database that has MLflow's tables already."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    with postgresql() as server:
        server.create(TEMPLATE)
        SqlAlchemyStore(server.address(TEMPLATE), "mlflow-artifacts:/").engine.dispose()
        yield server


@pytest.fixture
def database(postgres: PostgreSQL) -> str:
    """The address of a new database."""
    name = f"runs_{next(NUMBERS)}"
    postgres.create(name, template=TEMPLATE)
    return postgres.address(name)


@pytest.fixture
def server(database: str, tmp_path: Path) -> Iterator[MlflowServer]:
    """An MLflow server on a new database."""
    with mlflow_server(database, tmp_path / "server") as running:
        yield running
