"""A new experiment that goes on from another run's checkpoint has its own evaluations."""

from pathlib import Path

import pytest

from tests.execution import _runs
from tests.execution._runs import CALLBACKS, quick, wishing

BEFORE = ["train.steps=16", "train.checkpoint_every=8", "attack=sf", CALLBACKS]
BROKEN = ["rule=average", "mix=none", "clip=none", "attack=foe", "attack.tau=50"]
pytestmark = pytest.mark.usefixtures("users_parts")


@pytest.fixture(scope="module")
def checkpoint(users_parts: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run that learns, after eight steps and two evaluations."""
    folder = tmp_path_factory.mktemp("old")
    with wishing(copy=(8, folder, folder / "copy.ckpt"), signal=(9, "SIGINT")):
        quick(folder, *BEFORE, "tracking.model=both")
    return folder / "copy.ckpt"


def test_what_the_other_run_reached_is_not_its_own(checkpoint: Path, tmp_path: Path) -> None:
    asked = [*BROKEN, "train.steps=16", f"resume={checkpoint}", "resume_as=new"]
    fork = quick(tmp_path, *asked, "tracking.model=both")
    evaluated = fork.history["test/accuracy"]
    assert min(step for step, _ in evaluated) >= 8
    assert fork.max_accuracy == max(value for _, value in evaluated)
    assert fork.step_of_max >= 8
    assert fork.history["train/loss"][0][0] == 0  # how it came there is shown
    stored = _runs.values_of(tmp_path, fork.run_id)
    assert min(step for key, step in stored if key == "test/accuracy") >= 8
    ((at, best),) = [(s, v) for (key, s), v in stored.items() if key == "test/max_accuracy"]
    assert (at, best) == (fork.steps_done - 1, fork.max_accuracy)


def test_with_nothing_left_to_do_it_is_where_the_other_was(
    checkpoint: Path, tmp_path: Path
) -> None:
    asked = ["attack=sf", "train.steps=8", f"resume={checkpoint}", "resume_as=new"]
    fork = quick(tmp_path, *asked)
    assert fork.max_accuracy == max(value for _, value in fork.history["test/accuracy"]) > 0
