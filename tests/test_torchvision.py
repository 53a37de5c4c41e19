"""torchvision and lightning can be imported beside a CPU-only torch once lit_byz is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEALTHY = """
import torch
library = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):
    library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
import lit_byz
from lit_byz._torchvision import cure
assert cure() is False
import torchvision
print("untouched")
"""
IMPORTED = """
import sys
import lit_byz
assert "torch" not in sys.modules
from lit_byz import _torchvision
import torchvision
finders = [type(finder).__name__ for finder in sys.meta_path]
assert "_BeforeTorchvision" not in finders
assert _torchvision.cure() is False
import torchvision.transforms.v2, torchvision.datasets
print(torchvision.transforms.v2.functional.hflip(__import__("torch").arange(3)[None]).tolist())
"""
LIGHTNING = """
import lit_byz
import lightning
print("imported")
"""
# Beside a torch that torchvision was not made for, the first import fails; what it leaves behind
# must not be in the way of the second.
LIGHTNING_FIRST = """
try:
    import lightning
except RuntimeError as error:
    assert "torchvision::nms" in str(error), error
import lit_byz
import lightning.pytorch
import torchvision.transforms.v2
settings = ["dataset=digits", "model=logreg", "train.steps=2", "tracking.enabled=false"]
print(lit_byz.train(settings).status)
"""
# What a machine with a matching pair has: nothing fails, and everything works afterwards.
LIGHTNING_HEALTHY = (
    HEALTHY.partition("import lit_byz")[0]
    + """
import lightning
import lit_byz
settings = ["dataset=digits", "model=logreg", "train.steps=2", "tracking.enabled=false"]
print(lit_byz.train(settings).status)
"""
)


def output_of(script: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:lit_byz", "-c", script],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_torchvision_imports_after_lit_byz_cured_once_and_silently() -> None:
    assert output_of(IMPORTED) == ("[[2, 1, 0]]", "")


@pytest.mark.slow
def test_lightning_imports_after_lit_byz() -> None:
    assert output_of(LIGHTNING)[0] == "imported"


@pytest.mark.slow
def test_nothing_is_done_or_said_where_the_operators_are_there() -> None:
    assert output_of(HEALTHY) == ("untouched", "")


@pytest.mark.slow
@pytest.mark.parametrize("script", [LIGHTNING_FIRST, LIGHTNING_HEALTHY])
def test_lightning_may_come_first(script: str, tmp_path: Path) -> None:
    assert output_of(f"import os; os.chdir({str(tmp_path)!r})\n{script}")[0] == "finished"
