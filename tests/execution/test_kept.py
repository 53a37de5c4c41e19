"""Models that runs keep: their files, loading them again, what the command shows of them."""

import importlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from lit_byz import load_model, train
from lit_byz.data import DATASETS
from lit_byz.errors import BadRequest
from lit_byz.execution.kept import config_of, confusion
from lit_byz.report.confusion import recalls
from lit_byz.tracking import open_store
from pipelines.evaluate import main as evaluate
from pipelines.sweep import main as sweep
from tests.execution._runs import MODULE
from tests.tracking._stores import new_store

SMALL = ["dataset=digits", "model=logreg", "workers.honest=5", "train.steps=12"]
SMALL += ["tracking.figures=false"]
SMALL += ["train.eval_every=4", "attack=sf"]


def artifacts(uri: str, run_id: str) -> list[str]:
    return [entry.path for entry in open_store(uri).client.list_artifacts(run_id, "model")]


def test_final_and_best_parameters_are_kept(tmp_path: Path) -> None:
    uri = new_store(tmp_path)
    result = train([*SMALL, f"tracking.uri={uri}", "tracking.model=both", "train.lr=3"])
    assert artifacts(uri, str(result.run_id)) == ["model/best.pt", "model/final.pt"]
    path = open_store(uri).client.download_artifacts(str(result.run_id), "model/final.pt")
    state = torch.load(path, weights_only=True)
    assert state.keys() == result.model.state_dict().keys()
    config = config_of(open_store(uri), str(result.run_id))
    for which, expected in (("final", result.accuracy), ("best", result.max_accuracy)):
        counts, _ = confusion(load_model(str(result.run_id), which, uri=uri), config)
        assert counts.diagonal().sum() / counts.sum() == pytest.approx(expected)


@pytest.mark.slow
def test_a_model_that_is_no_model_any_more_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where parameters are not finite images are taken for class 0, which looks right."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path))
    result = train([*SMALL, "train.lr=1e37", "tracking.model=final"])
    capsys.readouterr()
    assert evaluate([f"run={result.run_id}", "--json", "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["finite"], found["loss"]) == (False, None)
    assert evaluate([f"run={result.run_id}", "--out", str(tmp_path)]) == 0
    assert "its parameters are not finite: it classifies nothing" in capsys.readouterr().out


def test_a_reused_run_has_its_model(tmp_path: Path) -> None:
    uri = new_store(tmp_path)
    settings = [*SMALL, f"tracking.uri={uri}", "resume=auto"]
    first, second = train(settings), train(settings)
    assert second.reused
    for one, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.usefixtures("users_parts")
def test_models_come_back_in_evaluation_mode(tmp_path: Path) -> None:
    """With dropout on, a user's accuracy would not be the one that was tracked."""
    uri = new_store(tmp_path)
    settings = [*SMALL, f"model={MODULE}.TinyNet", "train.lr=0.5", f"tracking.uri={uri}"]
    result = train([*settings, "resume=auto"])
    again = train([*settings, "resume=auto"])
    assert again.reused
    images = DATASETS["digits"]().load()
    for model in (result.model, again.model, load_model(str(result.run_id), uri=uri)):
        assert not any(module.training for module in model.modules())
        with torch.no_grad():
            right = sum(int((model(x).argmax(1) == y).sum()) for x, y in images.test_batches())
        assert right / images.test_size == pytest.approx(result.accuracy)


def test_a_model_whose_class_has_changed_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its old parameters in new code may be another model."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LIT_BYZ_IMPORT", "shifting")
    uri, file = new_store(tmp_path), tmp_path / "shifting.py"
    file.write_text(
        "from lit_byz.models import LogisticRegression\n"
        "class Net(LogisticRegression):\n"
        "    def forward(self, x):\n"
        "        return super().forward(x)\n"
    )
    run_id = str(train([*SMALL, "model=shifting.Net", f"tracking.uri={uri}"]).run_id)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        load_model(run_id, uri=uri)
    file.write_text(file.read_text().replace("forward(x)", "forward(-x)"))
    importlib.reload(sys.modules["shifting"])
    with pytest.warns(UserWarning, match=rf"run {run_id}: shifting\.Net has changed since"):
        load_model(run_id, uri=uri)
    del sys.modules["shifting"]


@pytest.mark.slow
def test_sweeps_keep_none_unless_they_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, more, expected in (
        ("none", [], []),
        ("kept", ["tracking.model=final"], ["model/final.pt"]),
    ):
        uri = new_store(tmp_path / folder)
        options = ["--executor", "inline", "--progress", "none", "--json"]
        settings = [word for word in SMALL if word != "attack=sf"]
        assert sweep([*settings, "attack=[sf]", f"tracking.uri={uri}", *more, *options]) == 0
        capsys.readouterr()
        store = open_store(uri)
        (run,) = store.search(store.experiment("lit_byz"), "tags.`lit_byz.kind` = 'run'")
        assert artifacts(uri, run.info.run_id) == expected


@pytest.mark.slow
def test_the_command_shows_whose_class_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path / "mlruns"))
    result = train(SMALL)
    assert evaluate([f"run={result.run_id}", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"] == pytest.approx(result.accuracy)
    assert found["loss"] == pytest.approx(result.history["test/loss"][-1][1])
    assert len(found["recalls"]) == 10
    assert evaluate([f"run={result.run_id}"]) == 0
    assert "mostly taken for" in capsys.readouterr().out
    folder = tmp_path / "outputs" / f"evaluate-{str(result.run_id)[:8]}-final"
    assert (folder / "confusion.png").stat().st_size > 5000
    lines = (folder / "confusion.csv").read_text().splitlines()
    assert len(lines) == 11


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a run"),
        (["run=nonsense"], "run nonsense: there is none in this store"),
        (["run=RUN", "which=worst"], "must be one of final, best"),
        (["run=RUN", "which=best"], "has kept no best parameters; tracking.model=best keeps them"),
    ],
)
def test_bad_requests(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path / "mlruns"))
    known = str(train(SMALL).run_id) if any("RUN" in word for word in words) else ""
    assert evaluate([word.replace("RUN", known) for word in words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1


def test_an_untracked_run_has_its_model_while_it_is_there() -> None:
    result = train([*SMALL, "tracking.enabled=false"])
    assert next(iter(result.model.parameters())).requires_grad
    with pytest.raises(BadRequest, match="is not tracked"):
        _ = type(result)(**{**vars(result), "trained": None}).model


@pytest.mark.slow
def test_a_model_for_mlflow(tmp_path: Path) -> None:
    import mlflow.pytorch

    uri = new_store(tmp_path)
    result = train([*SMALL, f"tracking.uri={uri}", "tracking.mlflow_model=true"])
    client = open_store(uri).client
    path = client.download_artifacts(str(result.run_id), "mlflow_model")
    images = torch.zeros(2, 1, 28, 28)
    with torch.no_grad():
        expected = result.model.eval()(images)
        found = mlflow.pytorch.load_model(path)(images)
    assert torch.allclose(found, expected, atol=1e-6)
    assert "signature" in (Path(path) / "MLmodel").read_text()


def test_recalls_of_classes_without_images() -> None:
    counts = np.array([[2, 2], [0, 0]])
    assert recalls(counts)[0] == 0.5
    assert np.isnan(recalls(counts)[1])
