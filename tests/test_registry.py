"""Components by name and by dotted path."""

from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import Callback

from lit_byz.attacks import FOE, Attack
from lit_byz.data import Dataset, Partition
from lit_byz.errors import BadRequest
from lit_byz.registry import Registry, nearest
from lit_byz.robust import RULES, Clip, Mix, Rule
from lit_byz.training import AfterRound


@pytest.fixture
def shapes() -> Registry:
    registry = Registry("shape")

    @registry.register("circle")
    class Circle:
        pass

    @registry.register("square")
    class Square:
        pass

    return registry


def test_names_are_sorted_and_found(shapes: Registry) -> None:
    assert list(shapes) == ["circle", "square"]
    assert "circle" in shapes
    assert "triangle" not in shapes
    assert shapes["square"].__name__ == "Square"


def test_same_name_twice_is_an_error(shapes: Registry) -> None:
    with pytest.raises(ValueError, match="shape 'circle' is registered twice"):
        shapes.register("circle")(type("Other", (), {}))
    assert shapes["circle"].__name__ == "Circle"


def test_dotted_path_reaches_any_class(shapes: Registry) -> None:
    from fractions import Fraction

    assert shapes["fractions.Fraction"] is Fraction


def test_name_to_write_into_a_config(shapes: Registry) -> None:
    from fractions import Fraction

    assert shapes.name_of(shapes["circle"]) == "circle"
    assert shapes.name_of(Fraction) == "fractions.Fraction"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cirle", "unknown shape 'cirle': did you mean 'circle'?"),
        ("xyz", "unknown shape 'xyz': there is circle, square"),
        ("a..b", "shape 'a..b': must be a dotted path such as my_module.MyClass"),
        ("no_such.A", "shape 'no_such.A': cannot import no_such: No module named 'no_such'"),
        (
            "fractions.gcd_",
            "shape 'fractions.gcd_': fractions has no 'gcd_'; there is Decimal, Fraction",
        ),
        ("math.pi", "shape 'math.pi' is a float, not a class"),
    ],
)
def test_unknown_names(shapes: Registry, name: str, message: str) -> None:
    with pytest.raises(BadRequest) as raised:
        shapes[name]
    assert str(raised.value) == message


def test_nearest_of_nothing() -> None:
    assert nearest("x", []) == "there is none"


def left_to_be_written() -> dict[str, Any]:
    """Every class of the package that leaves a method to those that derive from it."""
    found: list[type] = [Attack, Callback, Clip, Dataset, Mix, Partition, Rule]
    for kind in found:
        found += [each for each in kind.__subclasses__() if each not in found]
    ours = [kind for kind in found if kind.__module__.startswith("lit_byz.")]
    return {kind.__name__: kind for kind in ours if "to_write" in vars(kind)}


def test_every_base_class_has_an_example_of_its_own(tmp_path: Path) -> None:
    """Pasted, it is complete, and works where it stands for what it shows."""
    made: dict[str, Any] = {}
    for name, kind in left_to_be_written().items():
        example = kind.example
        assert len(example.splitlines()) == 3
        written: dict[str, type] = {}
        exec(example, written)
        (made[name],) = [each for own, each in written.items() if own.startswith("My")]
        assert kind in made[name].__mro__[1:], name
        RULES._check_written(made[name], name)
    assert {"GeometricRule", "CoordinateRule", "SearchedAttack", "DownloadedDataset"} <= {*made}
    x = torch.tensor([[1.0, 6.0], [2.0, 2.0], [9.0, 1.0]])
    assert torch.allclose(made["GeometricRule"]()(x), x.mean(0))
    assert made["CoordinateRule"]()(x).tolist() == [2.0, 2.0]
    assert torch.equal(made["SearchedAttack"]()(x, f=1), FOE()(x, f=1))
    made[AfterRound.__name__](1).after_round(None, SimpleNamespace(global_step=1))
    content, place = np.zeros((4, 13)), tmp_path / "data"
    own = made["DownloadedDataset"]
    folder = place / f"{own.__module__}.{own.__name__}"
    folder.mkdir(parents=True)
    y = np.arange(4) % 3
    names = ("train_images", "train_labels", "test_images", "test_labels")
    arrays = dict(zip(names, (content, y, content, y), strict=True))
    np.savez(folder / "my.npz", **arrays)
    own.files = {"my.npz": sha256((folder / "my.npz").read_bytes()).hexdigest()}
    assert own().load(place).train_size == 4
