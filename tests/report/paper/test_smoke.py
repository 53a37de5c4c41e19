"""One smoke test of each kind of the paper's experiments, on its own data and models."""

from pathlib import Path

import pytest

from lit_byz.report.paper.experiment import KINDS, catalogue, find
from tests.report.paper._small import compute, draw
from tests.tracking._stores import new_store

pytestmark = pytest.mark.data
ALPHA = "partition={name: dirichlet, alpha: 0.2}"
SHORT = ["train.steps=2", "train.lr_milestones=[1]"]
# Experiments, and how they are made smaller still.
SMOKE = {
    "paper/fig1a": ["workers.f=[1]", "rule=cwtm"],
    "paper/fig2": ["partition=extreme", "clip=[none,arc]", "attack=[sf,foe@coarse]"],
    "paper/fig3": ["partition=extreme", "rule=gm"],
    "paper/fig8": [],
    "paper/gain": ["partition=[extreme]", "workers.f=[1]", "rule=cwtm"],
    "paper/table1": ["rule=cwtm", ALPHA, "clip=arc", "attack=sf", "workers.batch_size=2", *SHORT],
    # ResNet-18 takes minutes for the test images alone.
    "paper/table3": ["clip=arc", "attack=sf", "workers.batch_size=2", "model=logreg"],
    "paper/fig6": [],
}


def test_every_kind_has_one() -> None:
    kinds = {(e.kind, e.form) for e in catalogue() if e.kind != "runtime"}
    assert {(find(name).kind, find(name).form) for name in SMOKE} == kinds
    assert {kind for kind, _ in kinds} | {"runtime"} == set(KINDS)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SMOKE)
def test_smoke_tests_are_computed_and_drawn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path / "mlruns"))
    trained = bool(find(name).points)
    changes = ["scale=smoke", *SMOKE[name]] if trained else []
    if trained:
        assert compute(f"experiment={name}", *changes) == 0
    capsys.readouterr()
    assert draw(name, *changes) == 0
    printed = " ".join(capsys.readouterr().out.split())
    folder = tmp_path / "outputs" / "paper" / name.rpartition("/")[2]
    assert any(folder.iterdir())
    if trained:
        assert "smoke test, the numbers mean nothing" in printed
        assert "partial" not in printed
