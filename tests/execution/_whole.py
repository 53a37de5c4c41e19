"""A run with every kind of state, to its end, and others that have to be the same."""

from pathlib import Path

import torch

from lit_byz import TrainResult
from tests.execution import _runs
from tests.execution._runs import CALLBACKS, MODULE, quick, wishing

STEPS = 14
# Every kind of state: momentums, batch norm's statistics, dropout's masks, an attacker's memory.
RICH = [
    f"model={MODULE}.TinyNet",
    "attack=mimic",
    "attack.warmup=9",
    "train.gradients=loop",
    f"train.steps={STEPS}",
    "train.checkpoint_every=5",
    "train.lr_milestones=[8]",
    "train.output=random_iterate",
    CALLBACKS,
]
SEARCHED = [*RICH, "attack=foe"]
SEARCHED.remove("attack.warmup=9")

Whole = tuple[Path, Path, str | None]


def assert_same_parameters(first: Path, second: Path) -> None:
    ours, theirs = (torch.load(path, weights_only=True) for path in (first, second))
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert torch.equal(value, theirs[name]), name


def uninterrupted(folder: Path, settings: list[str]) -> Whole:
    """The run as it should be: where it is tracked, its last parameters, its id."""
    parameters = folder / "whole.pt"
    with wishing(keep=parameters):
        result = quick(folder, *settings)
    assert result.status == "finished"
    return folder, parameters, result.run_id


def go_on(store: Path, parameters: Path, *settings: str) -> TrainResult:
    """The same run again, to its end."""
    with wishing(keep=parameters):
        return quick(store, *(settings or RICH), "resume=auto")


def assert_same_run(whole: Whole, store: Path, parameters: Path) -> None:
    """The one run in ``store`` is, bit for bit, the uninterrupted one."""
    (run_id,) = _runs.run_ids(store)
    assert _runs.values_of(store, run_id) == _runs.values_of(whole[0], whole[2])
    assert _runs.steps_of(store, run_id, "clip/threshold") == list(range(STEPS))
    assert _runs.duplicates(store) == []
    assert _runs.status_of(store, run_id) == "FINISHED"
    assert_same_parameters(whole[1], parameters)
