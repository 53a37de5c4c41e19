"""Runs on a data set of a user's own: those on other data are not taken for done."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lit_byz import TrainResult, train
from tests.tracking._stores import new_store

MODULE = """
    from pathlib import Path

    import numpy as np

    from lit_byz.data import Dataset

    class Mine(Dataset):
        classes, shape = 2, (3,)

        def read(self, root):
            x = np.load(Path(root) / "x.npy")
            y = (x[:, 0] > 0).astype(int)
            return x, y, x, y
"""
SHORT = ["model=logreg", "partition=iid", "workers.honest=3", "train.steps=2", "train.eval_every=2"]
SHORT += ["tracking.figures=false"]


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "own_files.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("own_files", None)


def test_files_that_were_edited_are_trained_on_anew(tmp_path: Path) -> None:
    store = new_store(tmp_path / "store")

    def result() -> TrainResult:
        asked = ["dataset=own_files.Mine", f"data.root={tmp_path}", f"tracking.uri={store}"]
        return train([*asked, *SHORT, "resume=auto"])

    numbers = np.random.default_rng(0).normal(size=(40, 3))
    np.save(tmp_path / "x.npy", numbers)
    first, again = result(), result()
    assert (first.reused, again.reused) == (False, True)
    np.save(tmp_path / "x.npy", -2 * numbers)
    edited = result()
    assert not edited.reused
    assert edited.history["train/loss"] != first.history["train/loss"]
    assert len(edited.other_code) == 1  # and it is said that there is a result on other data


NEVER_RIGHT = """
    import numpy as np

    from lit_byz.data import Dataset

    class NeverRight(Dataset):
        classes, shape = 3, (2,)

        def read(self, root):
            draw = np.random.default_rng(0)
            y = draw.integers(0, 2, 300)
            x = np.stack([2.0 * y - 1, np.ones(300)], 1) * 5
            return x, y, x[:50], np.full(50, 2)
"""


def test_where_every_accuracy_is_zero_the_first_one_is_the_maximum(tmp_path: Path) -> None:
    """And not a step at which nothing was evaluated."""
    (tmp_path / "own_files.py").write_text(textwrap.dedent(NEVER_RIGHT))
    longer = ["train.steps=6", "train.lr=1", "workers.batch_size=50", "data.validation=0.1"]
    asked = ["dataset=own_files.NeverRight", f"tracking.uri={new_store(tmp_path / 'store')}"]
    result = train([*asked, *SHORT, *longer, "attack=none"])
    assert result.history["test/accuracy"] == [(1, 0.0), (3, 0.0), (5, 0.0)]
    assert (result.max_accuracy, result.step_of_max) == (0.0, 1)
    assert result.history["step_of_max"] == [(5, 1.0)]
    assert (result.max_val_accuracy, result.test_at_val_max) == (1.0, 0.0)
