"""Clocks that jump, and clocks that differ."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults._clock import Clock
from tests.faults._disturbed import Disturbed, Judge, Reference, cleaned_up

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

DAY = 24 * 3600


def test_the_clock_is_another(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "clock")
    clock.jump(DAY)
    program = "import time; print(time.time(), time.monotonic())"
    said = subprocess.check_output([sys.executable, "-c", program], env=clock.environment)
    wall, steady = map(float, said.split())
    assert wall == pytest.approx(time.time() + DAY, abs=60)
    assert steady == pytest.approx(time.monotonic(), abs=60)


def test_jumps(tmp_path: Path, reference: Reference, judge: Judge, chance: random.Random) -> None:
    """A day ahead while it runs, then two days back before it is killed and called again."""
    clock = Clock(tmp_path / "clock")
    sweep = Disturbed(tmp_path / "sweep", environment=clock.environment)
    with cleaned_up(sweep):
        sweep.start()
        assert sweep.after(chance.randrange(30, 80))
        clock.jump(DAY)
        assert sweep.after(chance.randrange(30, 80))
        clock.jump(-DAY)
        assert sweep.after(chance.randrange(10, 30))
        sweep.kill()
        clock.jump(-2 * DAY)
        sweep.complete()
    assert judge("a clock that jumps", 3, sweep, reference).interrupted <= 2
