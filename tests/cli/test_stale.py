"""A result is never taken for one that other code would give."""

import importlib
import sys
from pathlib import Path

import pytest

from tests.cli._studies import run

RULE = """
from lit_byz.robust import Rule
from my_signs import sign

class MyRule(Rule):
    def aggregate(self, x):
        return sign() * x.median(0).values
"""
CALLBACK = """
from lightning.pytorch.callbacks import Callback

class Meddles(Callback):
    def on_train_batch_end(self, trainer, pl_module, *_):
        pl_module.model.layers[1].weight.data.mul_(1.0)
"""
MODULES = ("my_rules", "my_signs", "my_callbacks")
GRID = {"model": "logreg", "train": {"steps": 10, "eval_every": 5}, "attack": "sf"}
GRID |= {"tracking": {"figures": False}}


@pytest.fixture(autouse=True)
def _modules_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)


def sweep(folder: Path, *settings: str) -> str:
    """What a new process would say: the user's modules are read anew."""
    for name in MODULES:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    said = run(folder, "sweep", GRID, *settings)
    assert said.code == 0, said.stderr
    return said.stderr + said.stdout


def test_a_changed_line_is_computed_again_and_the_message_says_why(tmp_path: Path) -> None:
    """Also where the line stands in another module that the rule's own imports."""
    (tmp_path / "my_rules.py").write_text(RULE)
    (tmp_path / "my_signs.py").write_text("def sign():\n    return 1.0\n")
    assert "1 run computed now, 0 reused" in sweep(tmp_path, "rule=my_rules.MyRule")
    assert "0 runs computed now, 1 reused" in sweep(tmp_path, "rule=my_rules.MyRule")
    (tmp_path / "my_signs.py").write_text("def sign():\n    return -1.0\n")
    said = sweep(tmp_path, "rule=my_rules.MyRule")
    assert "1 run begun before by other code (numerics" in said
    assert "1 run computed now, 0 reused" in said
    (tmp_path / "my_signs.py").write_text("def sign():\n    return 1.0\n")
    assert "0 runs computed now, 1 reused" in sweep(tmp_path, "rule=my_rules.MyRule")


@pytest.mark.slow
def test_callbacks_may_change_training(tmp_path: Path) -> None:
    (tmp_path / "my_callbacks.py").write_text(CALLBACK)
    assert "1 run computed now" in sweep(tmp_path)
    meddling = "trainer.callbacks=[my_callbacks.Meddles]"
    assert "1 run computed now" in sweep(tmp_path, meddling)
    (tmp_path / "my_callbacks.py").write_text(CALLBACK.replace("1.0", "0.25"))
    assert "1 run computed now" in sweep(tmp_path, meddling)
    assert "0 runs computed now, 1 reused" in sweep(tmp_path)
