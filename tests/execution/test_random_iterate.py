"""Runs that return the paper's θ̂, the parameters after a step that is drawn in advance."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lit_byz import TrainResult, load_model, train
from lit_byz.cli.train import summary
from lit_byz.config.compose import compose
from lit_byz.execution.kept import config_of, confusion
from lit_byz.tracking import open_store
from lit_byz.training.settings import iterate_step
from tests.execution import _runs
from tests.execution._runs import MODULE, QUICK, quick, wishing
from tests.execution._whole import RICH, go_on
from tests.tracking._stores import new_store

METRIC = "test/random_iterate_accuracy"
ITERATE = ["train.output=random_iterate", "train.steps=6", "train.eval_every=1", "attack=sf"]
DIVERGING = ["attack=foe", "attack.tau=1e6", "clip=none", "mix=none", "rule=average"]
DIVERGING += ["model=mlp", "train.lr=1e3", "train.steps=300", "train.output=random_iterate"]


def seed_where(holds: Callable[[int], bool], steps: int = 6) -> int:
    """A seed by which a step is drawn for which something holds."""
    return next(seed for seed in range(1, 500) if holds(iterate_step(seed, steps)))


def accuracy_of(model: torch.nn.Module, result: TrainResult, uri: str) -> float:
    counts, _ = confusion(model, config_of(open_store(uri), str(result.run_id)))
    return float(counts.diagonal().sum() / counts.sum())


@pytest.mark.usefixtures("users_parts")
@pytest.mark.parametrize("done", [1, *(pytest.param(k, marks=pytest.mark.slow) for k in (0, 4))])
def test_it_is_what_the_run_returns_and_keeps(done: int, tmp_path: Path) -> None:
    """Parameters and statistics; its accuracy stands where that of the same parameters does."""
    uri, seed = new_store(tmp_path), seed_where(lambda drawn: drawn == done)
    settings = [*ITERATE, f"seed={seed}", f"model={MODULE}.TinyNet", "train.lr=0.5"]
    result = quick(tmp_path, *settings)
    history = {key: dict(points) for key, points in result.history.items()}
    same = history["test/accuracy"][done - 1] if done else history["test/initial_accuracy"][0]
    assert result.history[METRIC] == [(max(done - 1, 0), same)]
    kept = load_model(str(result.run_id), uri=uri)
    for model in (result.model, kept):
        assert accuracy_of(model, result, uri) == pytest.approx(same)
    assert result.model.state_dict().keys() == kept.state_dict().keys()
    for name, value in result.model.state_dict().items():
        assert torch.equal(value, kept.state_dict()[name]), name
    # What is said of the run's course stays what it was.
    last = quick(tmp_path, *settings, "train.output=last")
    assert (last.accuracy, last.max_accuracy) == (result.accuracy, result.max_accuracy)
    assert last.mean_last == result.mean_last
    ours, theirs = result.model.state_dict(), last.model.state_dict()
    assert not all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize(("done", "words"), [(0, "before the first step"), (4, "after step 4")])
def test_the_command_says_its_accuracy(
    done: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [*ITERATE, f"seed={seed_where(lambda drawn: drawn == done)}", "resume=auto"]
    for _ in range(2):  # the second time, it is read from the store
        assert _runs.command(tmp_path, settings) == 0
        printed = capsys.readouterr().out
        assert f"random iterate θ̂, the parameters {words}: accuracy 0." in printed
    assert _runs.command(tmp_path, ["train.steps=2", "attack=sf"]) == 0
    assert "random iterate" not in capsys.readouterr().out


def test_a_run_that_diverges_before_has_none(tmp_path: Path) -> None:
    uri = new_store(tmp_path)
    settings = [*DIVERGING, f"seed={seed_where(lambda drawn: drawn > 200, steps=300)}"]
    result = quick(tmp_path, *settings)
    assert result.status == "diverged"
    assert METRIC not in result.history
    assert accuracy_of(result.model, result, uri) == pytest.approx(result.accuracy)
    text = summary(compose([*QUICK, *settings, f"tracking.uri={uri}"]), result)
    assert "no random iterate θ̂ (after step 2" in text


@pytest.mark.usefixtures("users_parts")
@pytest.mark.parametrize("stop", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_an_interruption_does_not_change_it(stop: int, tmp_path: Path) -> None:
    """Before the step, and after it: then the checkpoint has it."""
    settings = [*RICH, f"seed={seed_where(lambda drawn: drawn == 7, steps=14)}"]
    whole = train([*QUICK, *settings, "tracking.enabled=false"])
    with wishing(signal=(stop, "SIGTERM")):
        assert quick(tmp_path, *settings).status == "interrupted"
    result = go_on(tmp_path, tmp_path / "last.pt", *settings)
    assert result.resumed_at == stop
    assert result.history[METRIC] == whole.history[METRIC]
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, result.model.state_dict()[name]), name
    last = torch.load(tmp_path / "last.pt", weights_only=True)
    assert not torch.equal(last["layers.0.weight"], result.model.state_dict()["layers.0.weight"])
