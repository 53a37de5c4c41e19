"""Arguments of a user's own classes: their names, their defaults, and lists among them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lit_byz.config.components import build
from lit_byz.config.compose import compose
from lit_byz.config.grid import points
from lit_byz.config.grid_source import read_grid
from tests.config._own import refused, written

OWN = """
    from pathlib import Path

    import numpy as np
    import torch
    from torch import nn

    from lit_byz.attacks import Attack, LabelFlip
    from lit_byz.robust import Rule

    class Push(Attack):
        def __init__(self, beta: float = 5.0, name: str = "x", seed: int = 4):
            self.beta, self.name, self.seed = beta, name, seed

        def plan(self, scene, state):
            return -self.beta * scene.honest.rows.mean(0)

    class Imitate(Attack):
        def __init__(self, beta: float):
            self.beta = beta

        def plan(self, scene, state):
            return -self.beta * scene.honest.rows.mean(0)

    class Flip(LabelFlip):
        pass

    class Named(Rule):
        def __init__(self, name, f=1):
            self.name = name

        def aggregate(self, x):
            return x.mean(0)

    class Places(Rule):
        def __init__(self, f=0, places=[1, 2], widths=(64, 32), other=None):
            self.f, self.places, self.widths, self.other = f, places, widths, other

        def aggregate(self, x):
            return x.mean(0)

    class Reading(Rule):
        def __init__(self, k=np.int64(3), file: Path = Path("a"), other: Path | None = None):
            self.k, self.file, self.other = k, file, other

        def aggregate(self, x):
            return x.mean(0)

    class Scaled(nn.Module):
        def __init__(self, shape, classes, init_scale):
            super().__init__()

    class Lazy(nn.Module):
        def __init__(self, classes):
            super().__init__()
            self.layers = nn.Sequential(nn.Flatten(), nn.LazyLinear(classes))

        def forward(self, x):
            return self.layers(x)

    class Outer:
        class Inner(Attack):
            class Innermost(Attack):
                pass
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a user's module."""
    monkeypatch.syspath_prepend(tmp_path)
    with written(tmp_path, "own_arguments", OWN) as name:
        yield name


def test_a_beta_of_ones_own_keeps_its_default(own: str) -> None:
    config = compose([f"attack={own}.Push", "train.momentum=0.5", "seed=9"])
    assert config.attack == {"name": f"{own}.Push", "beta": 5.0, "seed": 9}
    for name in ("Imitate", "Flip"):
        config = compose([f"attack={own}.{name}", "train.momentum=0.5"])
        assert config.attack.beta == 0.5
    assert compose(["attack=lf", "train.momentum=0.5"]).attack.beta == 0.5


def test_an_argument_called_name(own: str) -> None:
    config = compose([f"attack={own}.Push", "attack.beta=2"])
    made = build("attack", config.attack)
    assert (made.name, made.beta) == ("x", 2.0)
    assert refused(f"rule={own}.Named") == (
        f"rule={own}.Named: its argument 'name' is taken by the key rule.name; call it otherwise"
    )
    assert "'init_scale' is taken by the key model.init_scale" in refused(f"model={own}.Scaled")


@pytest.mark.parametrize(("key", "default"), [("places", [1, 2]), ("widths", [64, 32])])
def test_a_list_without_a_hint_is_one_value(own: str, key: str, default: list[int]) -> None:
    rule = f"rule={own}.Places"
    assert compose([rule]).rule[key] == default
    assert compose([rule, f"rule.{key}=[5]"]).rule[key] == [5]
    for typed, expected in (("[1,2]", [[1, 2]]), ("[[1,2],[3]]", [[1, 2], [3]])):
        grid = read_grid([rule, "dataset=digits", f"rule.{key}={typed}"], "none")
        assert [point.plain["rule"][key] for point in points(grid)] == expected
    grid = read_grid([rule, "dataset=digits", "rule.other=[1,2]"], "none")
    assert [point.plain["rule"]["other"] for point in points(grid)] == [1, 2]
    assert compose([rule, f"rule.{key}=5"]).rule[key] == 5  # which its class may take as well


def test_paths_and_numbers_of_numpy(own: str) -> None:
    """Written as text and numbers, and given to the class as paths."""
    config = compose([f"rule={own}.Reading"])
    assert config.rule == {"name": f"{own}.Reading", "k": 3, "file": "a", "other": None}
    made = build("rule", config.rule)
    assert (made.k, made.file, made.other) == (3, Path("a"), None)
    config = compose([f"rule={own}.Reading", "rule.k=5", "rule.file=b/c", "rule.other=d"])
    made = build("rule", config.rule)
    assert (made.k, made.file, made.other) == (5, Path("b/c"), Path("d"))


def test_a_model_without_sizes(own: str) -> None:
    assert refused(f"model={own}.Lazy", "dataset=digits") == (
        f"model={own}.Lazy: has layers without sizes, such as LazyLinear; give all sizes in its "
        "constructor, which gets shape and classes if it has these arguments"
    )


@pytest.mark.parametrize("inner", ["Inner", "Inner.Innermost"])
def test_a_class_inside_a_class(own: str, inner: str) -> None:
    for _ in range(2):  # its module is in memory the second time
        assert refused(f"attack={own}.Outer.{inner}") == (
            f"attack '{own}.Outer.{inner}': {own}.Outer is a class, and a class inside a class "
            f"cannot be named; put it at the top of {own}"
        )
