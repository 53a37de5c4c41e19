"""Stores that are stopped while a sweep runs: nothing is refused, and nothing is answered."""

import contextlib
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults._disturbed import Disturbed, Judge, Reference, cleaned_up
from tests.services._mlflow_server import MlflowServer
from tests.services._postgresql import PostgreSQL

pytestmark = [pytest.mark.services, pytest.mark.timeout(900)]


def below(number: int) -> list[int]:
    """The numbers of a process and of all that it has started, in that order."""
    found = [number]
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            above = int(path.read_text().rpartition(")")[2].split()[1])
            if above == number:
                found += below(int(path.parent.name))
    return found


@contextlib.contextmanager
def stopped(number: int) -> Iterator[None]:
    """All of a program's processes stand still for a while."""
    os.kill(number, signal.SIGSTOP)  # which begins no others now
    every = below(number)
    for each in every:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in every:
            os.kill(each, signal.SIGCONT)


@pytest.mark.parametrize("what", ["the database", "the server"])
def test_training_goes_on(
    what: str,
    request: pytest.FixtureRequest,
    postgres: PostgreSQL,
    database: str,
    tmp_path: Path,
    reference: Reference,
    judge: Judge,
    chance: random.Random,
) -> None:
    address = database
    number = int((postgres.folder / "data" / "postmaster.pid").read_text().split()[0])
    if what == "the server":
        server: MlflowServer = request.getfixturevalue("server")
        assert server._process is not None
        address, number = server.address, server._process.pid
    sweep = Disturbed(tmp_path / "sweep", store=address, database=database)
    with cleaned_up(sweep):
        sweep.start()
        assert sweep.after(chance.randrange(4, 12))
        with stopped(number):
            # A run has most of its steps before it: these are taken meanwhile.
            assert sweep.after(30)
        sweep.complete()
    judge(f"SIGSTOP of {what}", 1, sweep, reference)
    assert sweep.codes == [0], sweep.said
