"""kill -9 of whatever belongs to a sweep, and the signals of a scheduler that wants it to end."""

import random
import signal
import time
from pathlib import Path

import pytest

from tests.cli import _kills
from tests.faults._disturbed import Disturbed, Judge, Reference, cleaned_up
from tests.faults._records import rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# All processes, one of those that compute, the main one, or the one that they are forked from.
VICTIMS = ("group", "child", "main", "origin", "child", "child", "origin", "main")


def test_processes(
    tmp_path: Path, reference: Reference, judge: Judge, chance: random.Random
) -> None:
    sweep = Disturbed(tmp_path / "sweep")
    first, *waiting = VICTIMS
    with cleaned_up(sweep):
        # Two runs that both have a checkpoint, for sure: they are gone on with.
        process = sweep.start()
        assert sweep.held_each(chance.randrange(11, 20))
        assert _kills.kill(process, first, chance)
        assert sweep.wait() != 0
        while waiting:
            process = sweep.process or sweep.start()
            on = sweep.after(chance.randrange(8, 28))
            if on and _kills.kill(process, waiting[0], chance):
                on = waiting.pop(0) in ("child", "origin")
            if not on:
                assert sweep.wait() != 0, "complete before all faults were done"
        sweep.complete()
    kind = "kill -9: a run's process, the executor's, the main one, all"
    verdict = judge(kind, len(VICTIMS), sweep, reference)
    assert verdict.resumed >= 2
    assert verdict.interrupted <= 2 * len(VICTIMS)


@pytest.mark.parametrize("executor", ["processes", "inline"])
def test_a_scheduler_that_waits(
    tmp_path: Path, reference: Reference, judge: Judge, chance: random.Random, executor: str
) -> None:
    """SIGTERM to every process, and time to save: no run ends by an error."""
    sweep = Disturbed(tmp_path / "sweep", options=("--workers", "2", "--executor", executor))
    with cleaned_up(sweep):
        sweep.start()
        assert sweep.after(chance.randrange(40, 120))
        sweep.send(signal.SIGTERM)
        assert sweep.wait() == 130
        assert "the same command goes on" in sweep.output
        assert rows(sweep.database, "select * from tags where key = 'lit_byz.error'") == []
        sweep.complete()
    assert judge("SIGTERM, with time to save", 1, sweep, reference).interrupted <= 2


def test_a_scheduler_that_does_not(
    tmp_path: Path, reference: Reference, judge: Judge, chance: random.Random
) -> None:
    """SIGTERM to every process, and SIGKILL while they save."""
    sweep = Disturbed(tmp_path / "sweep")
    with cleaned_up(sweep):
        for _ in range(2):
            sweep.start()
            assert sweep.after(chance.randrange(40, 120))
            sweep.send(signal.SIGTERM)
            sweep.let_go()
            time.sleep(chance.uniform(0.0, 0.2))
            sweep.kill()
        sweep.complete()
    assert judge("SIGTERM, then SIGKILL at once", 2, sweep, reference).interrupted <= 4
