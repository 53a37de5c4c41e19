"""Files of a data set that become shorter while runs read them."""

import os
import random
from pathlib import Path

import pytest

from tests.data import _tiny
from tests.faults._disturbed import GRID, Disturbed, Judge, cleaned_up, undisturbed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TINY = {
    **GRID,
    "dataset": f"{_tiny.__name__}.Tiny",
    "partition": "iid",
    "workers": {"honest": 5, "batch_size": 4},
    "train": {"steps": 60, "eval_every": 10, "checkpoint_every": 10, "lr": 0.1},
    "grid": {"axes": {"attack": ["sf", "lf"], "seed": [1, 2]}},
}


def test_truncated(
    tmp_path: Path,
    judge: Judge,
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While it is mapped, which ends those who read it; and before a call, which mends it."""
    monkeypatch.setenv("LIT_BYZ_DATA", str(tmp_path / "data"))
    reference = undisturbed(tmp_path / "undisturbed", TINY)
    (path,) = (tmp_path / "data").rglob("train_images.npy")
    sweep = Disturbed(tmp_path / "sweep", TINY)
    with cleaned_up(sweep):
        sweep.start()
        assert sweep.after(chance.randrange(30, 100))
        os.truncate(path, 0)
        assert sweep.wait() == 1
        os.truncate(path, chance.randrange(100))
        sweep.complete()
    judge("a truncated data file", 2, sweep, reference)
