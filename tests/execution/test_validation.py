"""Images held out: a run tracks its accuracy on them, and tuning is judged by it."""

import json
from pathlib import Path

import pytest

from lit_byz import train
from lit_byz.cli.tune import main as tune
from lit_byz.config.compose import compose
from lit_byz.config.identity import identity
from tests.tracking._stores import new_store

SMALL = ["dataset=digits", "model=logreg", "workers.honest=5", "workers.batch_size=10"]
SMALL += ["tracking.figures=false"]
SHORT = [*SMALL, "train.steps=30", "train.eval_every=10", "attack=foe", "partition=extreme"]


def test_a_run_with_images_held_out(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    result = train([*SHORT, "data.validation=0.1", f"tracking.uri={store}"])
    found = {name: dict(points) for name, points in result.history.items()}
    validated = found["val/accuracy"]
    assert sorted(validated) == sorted(found["test/accuracy"]) == [9, 19, 29]
    assert result.max_val_accuracy == max(validated.values())
    step = min(s for s in validated if validated[s] == result.max_val_accuracy)
    assert found["val/step_of_max"] == {29: float(step)}
    assert result.test_at_val_max == found["test/accuracy"][step]
    assert found["test/max_accuracy"] == {29: max(found["test/accuracy"].values())}
    again = train([*SHORT, "data.validation=0.1", f"tracking.uri={store}", "resume=auto"])
    assert again.reused
    assert again.max_val_accuracy == result.max_val_accuracy
    assert again.test_at_val_max == result.test_at_val_max


def test_the_accuracy_is_that_of_the_images_held_out(tmp_path: Path) -> None:
    from lit_byz.execution.assemble import make_module

    store = new_store(tmp_path)
    settings = [*SHORT, "data.validation=0.2", f"tracking.uri={store}"]
    result = train(settings)
    module = make_module(compose(settings))
    module.model.load_state_dict(result.model.state_dict())
    module.model.eval()
    right = count = 0
    for x, y in module.batches.held_out_batches(50):
        right += int((module.model(x).argmax(1) == y).sum())
        count += len(y)
    assert count == len(module.batches.held_out) > 200
    assert dict(result.history["val/accuracy"])[29] == pytest.approx(right / count)


def test_a_run_without_is_the_run_that_it_was() -> None:
    """Results from before there was a split are still the same runs'."""
    plain = identity(compose(SHORT))
    assert identity(compose([*SHORT, "data.validation=0"])) == plain
    assert identity(compose([*SHORT, "data.validation=0.1"])) != plain
    result = train([*SHORT, "tracking.enabled=false"])
    assert result.max_val_accuracy is None
    assert not any(name.startswith("val/") for name in result.history)


@pytest.mark.slow
def test_tuning_is_judged_by_the_images_held_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = f"tracking.uri={new_store(tmp_path)}"
    settings = [*SMALL, "train.steps=30", "train.eval_every=10", "partition=extreme", store]
    settings += ["attack=[sf,foe]", "data.validation=0.2", "--trials", "3", "--workers", "1"]
    assert tune([*settings, "--json", "--progress", "none"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["judged_on"] == "validation"
    best = found["best"]
    runs = [train_of(tmp_path, run["run_id"]) for run in best["runs"].values()]
    # Runs of what was chosen are complete, even where pruning had stopped them before.
    assert all(run["status"] == "finished" for run in best["runs"].values())
    assert best["worst_case"] == min(run["val/max_accuracy"] for run in runs)
    assert best["worst_case_tested"] == min(run["test/accuracy_at_val_max"] for run in runs)
    assert all(t["worst_case"] <= best["worst_case"] for t in found["trials"] if t["worst_case"])
    assert tune([*settings, "--progress", "plain"]) == 0
    said = capsys.readouterr()
    assert "judged on: 20 % of the training images, held out; then tested" in said.err
    assert "on images held out" in said.out
    assert "maximal validation accuracy in %" in said.out


def train_of(folder: Path, run_id: str) -> dict[str, float]:
    from lit_byz.tracking.store import open_store

    store = open_store(new_store(folder))
    return dict(store.client.get_run(run_id).data.metrics)


def test_tuning_on_the_test_images_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = [*SMALL, "train.steps=10", "attack=[sf]", "--trials", "1", "--dry-run"]
    assert tune([*settings, f"tracking.uri={new_store(tmp_path)}"]) == 0
    assert "judged on: the test images; data.validation=0.1 holds out" in capsys.readouterr().err
