"""A result is never taken for one that other code would give."""

import subprocess
import sys
from pathlib import Path

from tests.cli._sweeps import ROOT, furnish

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


def sweep(folder: Path, *settings: str) -> str:
    words = ["model=logreg", "train.steps=30", "attack=[sf,lf]", "--executor", "inline", *settings]
    done = subprocess.run(
        [sys.executable, str(ROOT / "pipelines" / "sweep.py"), *words, "--progress", "plain"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr + done.stdout


def test_a_changed_line_is_computed_again_and_the_message_says_why(tmp_path: Path) -> None:
    """Also where the line stands in another module that the rule's own imports."""
    furnish(tmp_path)
    (tmp_path / "my_rules.py").write_text(RULE)
    (tmp_path / "my_signs.py").write_text("def sign():\n    return 1.0\n")
    assert "2 runs computed now, 0 reused" in sweep(tmp_path, "rule=my_rules.MyRule")
    assert "0 runs computed now, 2 reused" in sweep(tmp_path, "rule=my_rules.MyRule")
    (tmp_path / "my_signs.py").write_text("def sign():\n    return -1.0\n")
    said = sweep(tmp_path, "rule=my_rules.MyRule")
    assert "2 runs were computed before by other code (numerics" in said
    assert "2 runs computed now, 0 reused" in said
    (tmp_path / "my_signs.py").write_text("def sign():\n    return 1.0\n")
    assert "0 runs computed now, 2 reused" in sweep(tmp_path, "rule=my_rules.MyRule")


def test_callbacks_may_change_training(tmp_path: Path) -> None:
    furnish(tmp_path)
    (tmp_path / "my_callbacks.py").write_text(CALLBACK)
    assert "2 runs computed now" in sweep(tmp_path)
    meddling = "trainer.callbacks=[my_callbacks.Meddles]"
    assert "2 runs computed now" in sweep(tmp_path, meddling)
    (tmp_path / "my_callbacks.py").write_text(CALLBACK.replace("1.0", "0.5"))
    assert "2 runs computed now" in sweep(tmp_path, meddling)
    assert "0 runs computed now, 2 reused" in sweep(tmp_path)
