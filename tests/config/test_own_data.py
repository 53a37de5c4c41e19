"""A data set of a user's own: what it consists of is a part of a run's identity."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lit_byz.config.compose import compose_plain
from lit_byz.config.grid import points
from lit_byz.config.grid_source import read_grid
from lit_byz.config.identity import Identity, identify
from lit_byz.config.own_data import forget_data
from lit_byz.data import MNIST, RawImages
from lit_byz.errors import BadRequest

MODULE = """
    from pathlib import Path

    import numpy as np

    from lit_byz.data import Dataset

    read = []

    class Mine(Dataset):
        classes, shape = 2, (3,)

        def read(self, root):
            read.append(root)
            x = np.load(Path(root) / "x.npy")
            y = np.arange(len(x)) % 2
            return x, y, x, y

    class Versioned(Mine):
        def digest(self, root=None):
            return "version 1"
"""
OWN = ["dataset=own_numbers.Mine", "model=logreg", "partition=iid"]
X = np.arange(12.0).reshape(4, 3)


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "own_numbers.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LIT_BYZ_DATA", str(tmp_path / "nothing here"))
    yield
    forget_data()
    sys.modules.pop("own_numbers", None)


def put(folder: Path, numbers: np.ndarray) -> Path:
    folder.mkdir(exist_ok=True)
    np.save(folder / "x.npy", numbers)
    return folder


def identity(*settings: str) -> Identity:
    forget_data()  # as every command does
    return identify(compose_plain([*OWN, *settings]))


def test_another_folder_with_other_numbers_is_another_run(tmp_path: Path) -> None:
    one, two = put(tmp_path / "v1", X), put(tmp_path / "v2", X + 1)
    found = [identity(f"data.root={folder}") for folder in (one, two)]
    assert found[0].settings == found[1].settings
    assert found[0].code != found[1].code
    moved = put(tmp_path / "v3", X)
    assert identity(f"data.root={moved}") == found[0]
    put(one, X + 1)
    assert identity(f"data.root={one}") == found[1]


def test_it_may_name_its_version_itself(tmp_path: Path) -> None:
    found = [
        identity("dataset=own_numbers.Versioned", f"data.root={tmp_path / name}")
        for name in ("v1", "v2")
    ]
    assert found[0] == found[1]
    assert sys.modules["own_numbers"].read == []


def test_a_folder_of_one_name_may_be_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(put(tmp_path / "here", X))
    here = identity("data.root=.")
    monkeypatch.chdir(put(tmp_path / "there", X + 1))
    assert identity("data.root=.") != here


def test_what_cannot_be_read_here_counts_by_its_folder(tmp_path: Path) -> None:
    found = [identity(f"data.root={tmp_path / name}") for name in ("v1", "v2")]
    assert found[0].code.endswith(f"its data in {tmp_path / 'v1'}")
    assert found[0].code != found[1].code


def test_a_command_reads_it_once_and_the_next_one_again(tmp_path: Path) -> None:
    root = put(tmp_path / "v1", X)
    asked = [*OWN, f"data.root={root}", "attack=[sf,lf]", "seed=[1,2,3]"]
    first = points(read_grid(asked, "none"))
    read = sys.modules["own_numbers"].read
    assert len(read) == 1
    put(root, X + 1)
    second = points(read_grid(asked, "none"))
    assert len(read) == 2
    assert not {p.identity for p in first} & {p.identity for p in second}


def test_the_folder_is_an_axis_for_such_data_sets_alone(tmp_path: Path) -> None:
    roots = [put(tmp_path / "v1", X), put(tmp_path / "v2", X + 1)]
    axis = f"data.root=[{roots[0]},{roots[1]}]"
    found = points(read_grid([*OWN, axis], "none"))
    assert [point.cell for point in found] == [f"data.root={root}" for root in roots]
    assert len({point.identity for point in found}) == 2
    for package in ("dataset=digits", "seed=1"):
        with pytest.raises(BadRequest, match=r"data\.root: changes no result"):
            read_grid([package, axis], "none")


def test_every_value_its_type_and_its_place_count() -> None:
    y = np.array([0, 1, 0, 1])
    raws = [(X, y), (X.astype(np.float32), y), (X[::-1], y), (X.reshape(2, 6), y[:2]), (X, 1 - y)]
    assert len({RawImages(x, labels, x, labels).digest() for x, labels in raws}) == len(raws)
    assert RawImages(X, y, X, y).digest() == RawImages(np.asfortranarray(X), y, X, y).digest()


def test_what_is_downloaded_is_known_by_its_checksums(tmp_path: Path) -> None:
    assert MNIST().digest(tmp_path) == MNIST().digest()
    assert list(tmp_path.iterdir()) == [tmp_path / "own_numbers.py"]
