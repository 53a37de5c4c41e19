"""Checkpoints that a disk has damaged: the one before is taken, or else the run begins anew."""

import random
from pathlib import Path

import pytest

from tests.faults._disturbed import Disturbed, Judge, Reference, cleaned_up

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LAST, PREVIOUS = "last.ckpt", "previous.ckpt"
REACHED = 23  # steps, by a run with checkpoints of steps 10 and 20


def truncate(path: Path, chance: random.Random) -> None:
    """Cut a file somewhere."""
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])


def flip(path: Path, chance: random.Random) -> None:
    """Change a few bits, anywhere."""
    content = bytearray(path.read_bytes())
    for place in chance.sample(range(len(content)), 3):
        content[place] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def empty(path: Path, chance: random.Random) -> None:
    path.write_bytes(b"")


def killed_with_two_checkpoints(sweep: Disturbed) -> list[Path]:
    """The folders of two runs that have been killed with two checkpoints each."""
    sweep.start()
    assert sweep.held_each(REACHED)
    sweep.kill()
    found = [path.parent for path in sorted(sweep.checkpoints.glob(f"*/{PREVIOUS}"))]
    assert len(found) == 2
    return found


def test_the_last_one(
    tmp_path: Path, reference: Reference, judge: Judge, chance: random.Random
) -> None:
    sweep = Disturbed(tmp_path / "sweep", forgets=REACHED - 10)
    with cleaned_up(sweep):
        one, other = killed_with_two_checkpoints(sweep)
        truncate(one / LAST, chance)
        flip(other / LAST, chance)
        sweep.complete()
    verdict = judge("last.ckpt truncated, or bits flipped", 2, sweep, reference)
    assert verdict.attempts == 0  # none was begun anew
    assert verdict.resumed == 2
    assert verdict.recomputed == 2 * (REACHED - 10)
    for folder in (one, other):
        assert f"{folder.name}/{LAST} is damaged" in sweep.said[1]


def test_both(tmp_path: Path, reference: Reference, judge: Judge, chance: random.Random) -> None:
    """Nothing is left to go on from: the attempt is given up, and the next one is whole."""
    sweep = Disturbed(tmp_path / "sweep", forgets=REACHED)
    with cleaned_up(sweep):
        one, other = killed_with_two_checkpoints(sweep)
        for folder, last, previous in ((one, truncate, flip), (other, empty, truncate)):
            last(folder / LAST, chance)
            previous(folder / PREVIOUS, chance)
        sweep.complete()
    verdict = judge("both checkpoints truncated, or bits flipped", 4, sweep, reference)
    assert (verdict.attempts, verdict.resumed) == (2, 0)
    assert sweep.said[1].count("is damaged") == 4
