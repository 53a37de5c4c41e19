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

from tests.cli import _kills
from tests.faults._disturbed import WITHOUT_STORE, Disturbed, Judge, Reference, cleaned_up
from tests.faults._mounts import full, read_only, small_disk

pytestmark = pytest.mark.timeout(900)

LOCK = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
database.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
database.execute("ROLLBACK")
"""
FULL = "error: no space left on the disk: make some, then the same command goes on: "


@pytest.mark.services
@pytest.mark.parametrize("until", ["for a moment", "until it has given up"])
def test_full(
    tmp_path: Path, reference: Reference, judge: Judge, chance: random.Random, until: str
) -> None:
    store = tmp_path / "sweep" / "mlruns"
    with small_disk(store, 32):
        sweep = Disturbed(store.parent)
        with cleaned_up(sweep):
            sweep.start()
            assert sweep.after(chance.randrange(40, 150))
            with full(store):
                if until == "for a moment":
                    sweep.let_go()
                    time.sleep(2)
                else:
                    assert sweep.wait() == 1
                    assert sweep.output.splitlines()[-1].startswith(FULL)
            sweep.complete()
        assert judge("a full disk", 1, sweep, reference).interrupted <= 2
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
            sweep.start()
            assert sweep.wait() == 1
            lines = [line for line in sweep.output.splitlines() if not line.endswith("…")]
            assert len(lines) <= 4, sweep.output  # what is shared, set and varies, and the error
            assert "error: " in sweep.output
        sweep.complete()
    judge("a read-only store", 2, sweep, reference)


@contextlib.contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another program has the database to itself."""
    command = [sys.executable, "-c", LOCK, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        try:
            assert other.stdout.readline() == b"locked\n"
            yield
        finally:
            other.stdin.close()


@pytest.mark.slow
@pytest.mark.parametrize("until", ["for a moment", "until it is told"])
def test_locked(
    tmp_path: Path, reference: Reference, judge: Judge, chance: random.Random, until: str
) -> None:
    sweep = Disturbed(tmp_path / "sweep")
    database = tmp_path / "sweep" / "mlruns" / "mlflow.db"
    with cleaned_up(sweep):
        sweep.start()
        assert sweep.held(chance.randrange(5, 30))
        with locked(database):
            with pytest.raises(sqlite3.OperationalError):
                sqlite3.connect(database, timeout=0).execute("BEGIN IMMEDIATE")
            if until == "for a moment":
                sweep.let_go()
                time.sleep(8)  # longer than SQLite itself waits
            else:
                assert sweep.after(WITHOUT_STORE)
                _kills.wait_until("it is told", lambda: "store away since" in sweep.output, 90)
        sweep.complete()
    verdict = judge("SQLite locked by another program", 1, sweep, reference)
    assert sweep.codes == [0], sweep.said  # it has waited
    assert verdict.interrupted == 0
    assert until == "for a moment" or "store back after" in sweep.output


def _until_its_end(sweep: Disturbed, seconds: float) -> None:
    """Wait for the end of the call that is on for so long, then end it."""
    assert sweep.process is not None
    sweep.let_go()
    with contextlib.suppress(subprocess.TimeoutExpired):
        sweep.process.wait(seconds)
    if sweep.process.poll() is None:
        sweep.kill()
    else:
        sweep.wait()
