"""Losses that are NaN and models that explode: results, counted as such, and not lost either."""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.faults import pace
from tests.faults._disturbed import GRID, Disturbed, Judge, cleaned_up, undisturbed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

POISONED = {
    **GRID,
    "trainer": {"callbacks": [f"{pace.__name__}.Pace", f"{pace.__name__}.Poison"]},
    "grid": {"axes": {"clip": ["none", "arc"], "attack": ["sf", "mimic"]}},
}
EXPLODING = {
    **GRID,
    "model": "mlp",
    "clip": "none",
    "mix": "none",
    "rule": "average",
    "attack": {"name": "foe", "tau": 1e6},
    "train": {"steps": 300, "eval_every": 10, "checkpoint_every": 5, "lr": 1e3},
    "grid": {"axes": {"seed": [1, 2, 3, 4]}},
}


@pytest.mark.parametrize(
    ("kind", "grid"),
    [("a loss that is NaN", POISONED), ("a model that explodes", EXPLODING)],
    ids=["nan", "explodes"],
)
def test_diverged(
    tmp_path: Path, judge: Judge, chance: random.Random, kind: str, grid: dict[str, Any]
) -> None:
    reference = undisturbed(tmp_path / "undisturbed", grid)
    runs = [entry for entry in reference.found if entry.kind == "run"]
    assert len(runs) == 4
    assert {run.outcome for run in runs} == {"diverged"}
    most = min(len([1 for key, _ in run.points if key == "train/loss"]) for run in runs)
    sweep = Disturbed(tmp_path / "sweep", grid)
    with cleaned_up(sweep):
        sweep.start()
        assert sweep.held(chance.randrange(most, 2 * most))
        sweep.kill()
        sweep.complete()
    judge(kind, len(runs), sweep, reference)
