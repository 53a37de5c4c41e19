"""``lit_byz.train`` as a function: what it takes, and what it leaves behind."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import Callback

from lit_byz import train
from lit_byz.config.compose import compose, to_plain
from lit_byz.config.identity import identify
from lit_byz.errors import BadRequest
from lit_byz.execution.run import train_attempt
from lit_byz.tracking.claims import Elsewhere
from lit_byz.tracking.new_run import Attempt
from tests.faults._mounts import read_only

FLAT = {"dataset": "digits", "model": "logreg", "train.steps": 3, "train.eval_every": 3}
FLAT |= {"attack": "sf", "workers.honest": 5, "tracking.enabled": False}
NESTED = {
    **{"dataset": {"name": "digits"}, "model": "logreg", "train": {"steps": 3, "eval_every": 3}},
    **{"attack": "sf", "workers": {"honest": 5}, "tracking": {"enabled": False}},
}
WORDS = [f"{key}={str(value).lower()}" for key, value in FLAT.items()]


@pytest.mark.parametrize("given", [FLAT, NESTED, to_plain(compose(WORDS)), compose(WORDS)])
def test_settings_in_any_form_are_the_same_run(given: Any) -> None:
    assert train(given).identity == train(WORDS).identity


def test_a_mapping_may_name_a_file_and_have_numbers_of_numpy(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("train: {steps: 9, lr: 0.2}")
    given = {**FLAT, "config": str(tmp_path / "mine.yaml"), "train.steps": np.int64(3)}
    assert train(given).identity == train([*WORDS, "train.lr=0.2"]).identity


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("dataset=digits", "settings = 'dataset=digits': must be a list of key=value, or a map"),
        (["--quiet"], "'--quiet': must be key=value; options are arguments here"),
        ({"train.stepz": 5}, "unknown key 'stepz' in train: did you mean 'steps'?"),
        ({"train": {"lr": object()}}, "cannot be written as a setting: a object"),
    ],
)
def test_bad_requests(given: Any, message: str) -> None:
    with pytest.raises(BadRequest) as raised:
        train(given)
    assert message in str(raised.value)


class Trip(Callback):
    """Ends a run by an error."""

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        raise RuntimeError("tripped")


def test_the_callers_random_numbers_go_on() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(FLAT)
    assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(5)
    with pytest.raises(RuntimeError, match="tripped"):
        train(FLAT, callbacks=[Trip()])
    assert torch.equal(torch.rand(3), expected)


class Meet(Callback):
    """Tries, in the middle of a run, to compute the same run once more."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.met = 0

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        with pytest.raises(Elsewhere):
            train_attempt(self.attempt, wait=0)
        self.met += 1


def test_without_tracking_equal_runs_come_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They save themselves in the same place, whether or not they go on from what is there."""
    monkeypatch.chdir(tmp_path)
    config = compose([*WORDS, "train.checkpoint_every=1"])
    attempt = Attempt(config, identify(to_plain(config)))
    meet = Meet(attempt)
    first = train_attempt(attempt, callbacks=[meet])
    assert meet.met == 3
    assert train_attempt(attempt, wait=0).history["train/loss"] == first.history["train/loss"]


@pytest.mark.services
def test_without_tracking_nothing_has_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with read_only(tmp_path):
        monkeypatch.chdir(tmp_path)
        assert train(FLAT).status == "finished"
    assert not list(tmp_path.iterdir())
