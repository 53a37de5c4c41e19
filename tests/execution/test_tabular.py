"""Data that are no images, a user's own: real tables, trained, swept, evaluated."""

import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from lit_byz import train
from lit_byz.cli.data import main as data
from lit_byz.cli.evaluate import main as evaluate
from lit_byz.cli.sweep import main as sweep
from lit_byz.data import Dataset, RawImages
from lit_byz.errors import BadRequest
from lit_byz.models import MODELS
from tests.tracking._stores import new_store

TABLES = """
    import numpy as np
    import torch
    from sklearn.datasets import load_breast_cancer, load_wine
    from torch import nn

    from lit_byz.data import Dataset

    def parts(x, y):
        x = (x - x.mean(0)) / x.std(0)
        test = np.arange(len(x)) % 4 == 0
        return x[~test], y[~test], x[test], y[test]

    class Wine(Dataset):
        classes, shape = 3, (13,)

        def read(self, root):
            return parts(*load_wine(return_X_y=True))

    class Cancer(Dataset):
        "Tensors, and sequences of ten triples."
        classes, shape = 2, (10, 3)

        def read(self, root):
            x, y = load_breast_cancer(return_X_y=True)
            return tuple(torch.tensor(part) for part in parts(x.reshape(-1, 10, 3), y))

    class Recurrent(nn.Module):
        def __init__(self, shape, classes):
            super().__init__()
            self.mix, self.last = nn.Linear(shape[1], 8), nn.Linear(8, classes)

        def forward(self, x):
            return self.last(torch.tanh(self.mix(x)).mean(1))
"""
SHORT = ["train.steps=40", "train.eval_every=20", "workers.batch_size=8", "workers.honest=6"]
SHORT += ["tracking.figures=false"]


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "own_tables.py").write_text(textwrap.dedent(TABLES))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path / "mlruns"))
    yield "own_tables"
    sys.modules.pop("own_tables", None)


@pytest.mark.parametrize("attack", ["lf", "foe", "mimic"])
def test_a_table_is_learnt_under_attack(tables: str, attack: str) -> None:
    own = [f"dataset={tables}.Wine", "model=logreg", "partition=iid", f"attack={attack}"]
    result = train([*own, *SHORT, "data.validation=0.2", "tracking.enabled=false"])
    assert result.max_accuracy > 0.9
    assert result.max_val_accuracy is not None
    assert result.history["test/initial_accuracy"][0][1] < 0.9


@pytest.mark.parametrize("model", ["mlp", "own_tables.Recurrent"])
@pytest.mark.parametrize("partition", ["extreme", "dirichlet"])
def test_sequences_and_own_models(tables: str, model: str, partition: str) -> None:
    own = [f"dataset={tables}.Cancer", f"model={model}", f"partition={partition}", "attack=sf"]
    result = train([*own, *SHORT, "tracking.enabled=false"])
    assert result.max_accuracy > 0.75


@pytest.mark.slow
def test_sweep_evaluate_and_show(tables: str, capsys: pytest.CaptureFixture[str]) -> None:
    own = [f"dataset={tables}.Wine", "model=mlp", "model.hidden=[8]", "partition=iid", *SHORT]
    asked = [*own, "attack=[sf,lf]", "clip=[none,arc]", "tracking.model=final"]
    assert sweep([*asked, "--executor", "inline", "--json", "--progress", "none"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [cell["worst_case"]["kind"] for cell in found["cells"]] == ["exact", "exact"]
    assert Path("outputs/sweep-clip-attack/worst_case.svg").is_file()
    run_id = train(own).run_id
    assert evaluate([f"run={run_id}", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["recalls"]) == 3
    assert data(["fetch", f"{tables}.Wine"]) == 0
    assert capsys.readouterr().out == (
        f"{tables}.Wine: 133 + 45 examples embedded, nothing to fetch\n"
    )
    assert data(["show", f"{tables}.Wine", "workers.honest=4", "model=logreg"]) == 0


def table(x: np.ndarray, y: np.ndarray, **attributes: object) -> Dataset:
    def read(self: Dataset, root: object) -> tuple[np.ndarray, ...]:
        return x, y, x, y

    content = {"classes": 2, "shape": x.shape[1:], "read": read, **attributes}
    made: Dataset = type("Table", (Dataset,), content)()
    return made


X, Y = np.arange(12.0).reshape(4, 3), np.array([0, 1, 0, 1])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.bool_])
def test_numbers_are_taken_as_they_are(dtype: type) -> None:
    found, labels = table(X.astype(dtype), Y.astype(np.uint8)).load().train_batch(torch.arange(4))
    assert found.dtype == torch.float32
    assert found.tolist() == X.astype(dtype).astype(np.float32).tolist()
    assert labels.dtype == torch.int64


def test_mean_and_std_by_feature_and_nothing_is_written_to() -> None:
    loaded = table(X, Y, mean=(1.0, 2.0, 3.0), std=(2.0,)).load()
    expected = (X - [1, 2, 3]) / 2
    for _ in range(2):
        (batch,) = [x for x, _ in loaded.test_batches(10)]
        np.testing.assert_allclose(batch.numpy(), expected)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (table(X[:, :2] + np.inf, Y), "train_images has 8 values that are not finite"),
        (table(X, Y.astype(float)), "train_labels is float64 of shape"),
        (table(X, Y[:3]), "it must be int64 of shape (4,)"),
        (table(X, Y + 1), "they must be within 0 … 1"),
        (table(X, Y, shape=(4,)), "of shape (N, 4), N > 0"),
        (table(X.astype(str), Y), "it must be uint8 (pixels) or floating-point"),
        (table(X, Y, random_flip=True), "random_flip and doubled are for images"),
        (table(X, Y, mean=(0.0, 1.0)), "mean has 2 values; it must have one, or one for each of 3"),
        (table(X, Y, shape=()), "shape must have at least one dimension"),
    ],
)
def test_what_a_table_must_not_be(made: Dataset, said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        made.load()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "got None: is a return missing?"),
        ((X, Y), "got 2 values"),
        (({}, Y, X, Y), "of shape ()"),
        (([[1], [1, 2]], Y, X, Y), "read must return arrays"),
    ],
)
def test_what_read_must_return(found: object, said: str) -> None:
    with pytest.raises(BadRequest, match=r"data set 'x'") as caught:
        RawImages.of("x", found).check("x", (3,), 2)
    assert said in str(caught.value)


def test_models_of_any_shape() -> None:
    for name in ("logreg", "mlp"):
        assert MODELS[name](shape=(2, 5), classes=3)(torch.zeros(4, 2, 5)).shape == (4, 3)
        with pytest.raises(
            ValueError, match=f"{name}: each dimension of shape must be an int >= 1"
        ):
            MODELS[name](shape=(0,))
        with pytest.raises(ValueError, match=f"{name}: shape must have at least one dimension"):
            MODELS[name](shape=())
    with pytest.raises(ValueError, match=r"got \(5,\); logreg and mlp take inputs of any shape"):
        MODELS["cnn_mnist"](shape=(5,))
