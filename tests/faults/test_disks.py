"""Disks that are full, or that can only be read, and an SQLite file that another program holds."""

import contextlib
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults._disturbed import Disturbed, Judge, Reference, cleaned_up
from tests.faults._mounts import full, read_only, small_disk

LOCK = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
database.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
time.sleep(float(sys.argv[2]))
database.execute("ROLLBACK")
"""


@pytest.mark.services
@pytest.mark.parametrize("seconds", [2.0, 15.0])
def test_full(
    tmp_path: Path, reference: Reference, judge: Judge, chance: random.Random, seconds: float
) -> None:
    """For a moment, or until the sweep has given up."""
    store = tmp_path / "sweep" / "mlruns"
    with small_disk(store, 32):
        sweep = Disturbed(store.parent)
        with cleaned_up(sweep):
            sweep.start()
            assert sweep.after(chance.randrange(40, 150))
            with full(store):
                _until_its_end(sweep, seconds)
            sweep.complete()
        judge("a full disk", 1, sweep, reference)
        for said in sweep.said:
            assert "Traceback" not in said


@pytest.mark.services
def test_read_only(
    tmp_path: Path, reference: Reference, judge: Judge, chance: random.Random
) -> None:
    """While it runs, and when it is called again."""
    sweep = Disturbed(tmp_path / "sweep")
    store = tmp_path / "sweep" / "mlruns"
    with cleaned_up(sweep):
        sweep.start()
        assert sweep.after(chance.randrange(40, 150))
        with read_only(store):
            _until_its_end(sweep, 20)
            if sweep.process is not None:
                sweep.kill()
            sweep.start()
            assert sweep.wait() == 1
            lines = [line for line in sweep.output.splitlines() if not line.endswith("…")]
            assert len(lines) <= 3, sweep.output
            assert "error: " in sweep.output
        sweep.complete()
    judge("a read-only store", 2, sweep, reference)


@contextlib.contextmanager
def locked(database: Path, seconds: float) -> Iterator[None]:
    """Another program has the database to itself for so long."""
    command = [sys.executable, "-c", LOCK, str(database), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        try:
            yield
        finally:
            other.wait()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [8.0, 60.0])
def test_locked(
    tmp_path: Path, reference: Reference, judge: Judge, chance: random.Random, seconds: float
) -> None:
    sweep = Disturbed(tmp_path / "sweep")
    database = tmp_path / "sweep" / "mlruns" / "mlflow.db"
    with cleaned_up(sweep):
        sweep.start()
        assert sweep.after(chance.randrange(40, 150))
        with locked(database, seconds), pytest.raises(sqlite3.OperationalError):
            sqlite3.connect(database, timeout=0).execute("BEGIN IMMEDIATE")
        sweep.complete()
    judge("SQLite locked by another program", 1, sweep, reference)
    assert sweep.codes == [0], sweep.said  # it has waited


def _until_its_end(sweep: Disturbed, seconds: float) -> None:
    """Wait for so long, or until the call that is on has ended."""
    assert sweep.process is not None
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and sweep.process.poll() is None:
        time.sleep(0.05)
    if sweep.process.poll() is not None:
        sweep.wait()
