"""The benchmark of gradient methods on small batches; its numbers mean nothing."""

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lit_byz.benchmark import gradients
from lit_byz.models import MODELS
from lit_byz.training import gradient_methods
from pipelines import benchmark


@pytest.fixture
def own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the table, to be written to."""
    copy = tmp_path / "table.yaml"
    shutil.copy(gradient_methods.TABLE, copy)
    monkeypatch.setattr(gradient_methods, "TABLE", copy)
    yield copy
    gradient_methods.table.cache_clear()


def measured(model: str, default: str, **seconds: list[float]) -> list[gradients.Row]:
    """Rows with the times of each method for 1 thread, 2, and so on."""
    fastest = [min(times) for times in zip(*seconds.values(), strict=True)]
    return [
        gradients.Row(model, 10, 25, place + 1, m, taken, taken / fastest[place], m == default)
        for m, times in seconds.items()
        for place, taken in enumerate(times)
    ]


def test_quick_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradients, "THREADS", (1,))
    names = ["logreg", "cnn_mnist"]
    assert benchmark.main(["gradients", "--quick", "--out", str(tmp_path), "--only", *names]) == 0
    rows = list(csv.DictReader((tmp_path / "gradients.csv").open()))
    for name in names:
        own = [r for r in rows if r["model"] == name]
        assert [r["method"] for r in own] == ["loop", "joined", "vmap"]
        assert min(float(r["over_fastest"]) for r in own) == 1.0
        assert [r["default"] for r in own] == ["False", "True", "False"]
    printed = capsys.readouterr().out
    assert "gradients of one step" in printed
    assert "reached" in printed or "missed" in printed


def test_every_model_has_a_case() -> None:
    assert set(gradients.CASES) == set(MODELS)


def test_writing_the_table(own_table: Path) -> None:
    """The fastest over all threads; other devices and models keep what they had."""
    before = yaml.safe_load(own_table.read_text())
    rows = measured("mlp", "loop", loop=[0.002, 0.005], joined=[0.004, 0.001234])
    gradients.write_table(rows, "cpu")
    text = own_table.read_text()
    assert text.startswith("# How per-worker gradients are computed by default")
    assert max(map(len, text.splitlines())) <= 100
    after = yaml.safe_load(text)
    assert after["mlp"]["cpu"] == {
        "method": "joined",
        "h, b": [10, 25],
        "loop": [2.0, 5.0],
        "joined": [4.0, 1.23],
    }
    assert after["mlp"]["cuda"] == before["mlp"]["cuda"]
    assert {**after, "mlp": before["mlp"]} == before
    gradients.write_table(measured("mlp", "joined", loop=[0.001], joined=[0.002]), "cuda")
    written = yaml.safe_load(own_table.read_text())["mlp"]
    assert (written["cpu"], written["cuda"]["method"]) == (after["mlp"]["cpu"], "loop")


@pytest.mark.parametrize(("loop", "method"), [(0.0011, "loop"), (0.0014, "joined")])
def test_a_default_is_not_given_up_for_little(loop: float, method: str, own_table: Path) -> None:
    rows = measured("mlp", "loop", loop=[loop, loop], joined=[0.001, 0.001])
    gradients.write_table(rows, "cpu")
    assert yaml.safe_load(own_table.read_text())["mlp"]["cpu"]["method"] == method


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "mpl"], "unknown name 'mpl': did you mean 'mlp'?"),
        (["--write", "--quick"], "--write: only a full run may decide the defaults"),
        (["--device", "tpu"], "invalid choice: 'tpu'"),
    ],
)
def test_bad_requests(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert benchmark.main(["gradients", *arguments]) == 2
    assert message in capsys.readouterr().err
