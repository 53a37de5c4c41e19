"""The constructor's signature as a schema."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pytest
from torch import Tensor, nn

from lit_byz.config.components import build
from lit_byz.config.compose import compose
from lit_byz.config.fields import REQUIRED, Domain, Field, constructor_fields, describe
from lit_byz.errors import BadRequest

if TYPE_CHECKING:
    from fractions import Fraction

GOOD = [
    (int, 3, 3),
    (float, 3, 3.0),
    (float, 2.5, 2.5),
    (float, "inf", float("inf")),
    (bool, True, True),
    (str, "a", "a"),
    (str, 7, "7"),
    (int | None, None, None),
    (int | None, 3, 3),
    (float | Literal["search"], "search", "search"),
    (float | Literal["search"], 2, 2.0),
    (int | str, 7, 7),
    (float | int, 7, 7),
    (bool | int, True, True),
    (Literal["a", 1], 1, 1),
    (list[int], [1, 2], [1, 2]),
    (list[float], [1, 2.5], [1.0, 2.5]),
    (list, [1, "a"], [1, "a"]),
    (tuple[float, ...], [1], [1.0]),
    (Sequence[int], [], []),
    (list[list[int]], [[1], [2, 3]], [[1], [2, 3]]),
    (dict[str, Any], {"a": 1}, {"a": 1}),
    (Any, object, object),
]
BAD = [
    (int, 3.0, "an integer"),
    (int, True, "an integer"),
    (int, "3", "an integer"),
    (float, True, "a number"),
    (float, "2.5", "a number"),
    (bool, 0, "true or false"),
    (str, 2.5, "text"),
    (str, None, "text"),
    (int | None, "none", "an integer or null"),
    (float | Literal["search"], "serach", "a number or search"),
    (Literal["a", "b"], "c", "one of a, b"),
    (Literal["a", 1], True, "one of a, 1"),
    (list[int], [1.5], "a list of integers"),
    (list[list[int]], [1], "a list"),
    (tuple[float, ...], 1, "a list of numbers"),
    (dict, [1], "a mapping"),
]


@pytest.mark.parametrize(("hint", "value", "expected"), GOOD)
def test_values_that_fit(hint: Any, value: Any, expected: Any) -> None:
    found = Field("key", hint).check("section", value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(("hint", "value", "words"), BAD)
def test_values_that_do_not(hint: Any, value: Any, words: str) -> None:
    with pytest.raises(BadRequest) as raised:
        Field("key", hint).check("section", value)
    assert str(raised.value) == f"section.key = {value!r}: must be {words}"
    assert describe(hint) == words


def test_domains() -> None:
    assert str(Domain(at_least=0, below=1)) == "at least 0 and less than 1"
    assert str(Domain(above=0, at_most=2)) == "greater than 0 and at most 2"
    inside = [value in Domain(at_least=0, below=1) for value in (-0.1, 0, 0.9, 1, float("nan"))]
    assert inside == [False, True, True, False, False]
    assert Field("key", float | None, None, domain=Domain(above=0)).check("", None) is None


def test_signature_of_a_class() -> None:
    class Component:
        def __init__(self, f: int, *, sizes: Sequence[int] = (1, 2), free=None, **others) -> None:  # type: ignore[no-untyped-def]
            pass

    fields, takes_others = constructor_fields(Component)
    assert [field.name for field in fields] == ["f", "sizes", "free"]
    assert [field.default for field in fields] == [REQUIRED, [1, 2], None]
    assert [field.hint for field in fields] == [int, Sequence[int], Any]
    assert takes_others


def test_defaults_of_a_data_class() -> None:
    @dataclass
    class Component:
        f: int
        sizes: list[int] = field(default_factory=lambda: [1, 2])
        pair: tuple[int, int] = field(default_factory=lambda: (3, 4))

    fields, _ = constructor_fields(Component)
    assert [each.default for each in fields] == [REQUIRED, [1, 2], [3, 4]]
    assert constructor_fields(type("Below", (Component,), {}))[0] == fields


def test_defaults_that_cannot_be_written() -> None:
    class Component:
        def __init__(
            self,
            f: int,
            sizes: Any = ((1, 2), None),
            activation: Any = dict,
            look: Any = len,
            names: Any = frozenset(),
        ) -> None:
            pass

    fields, _ = constructor_fields(Component)
    assert [each.is_setting for each in fields] == [True, True, False, False, False]


class Net(nn.Module):
    def __init__(self, shape: Any = nn.Module, hidden: int = 4, activation: Any = nn.ReLU) -> None:
        super().__init__()
        self.made_of = shape, hidden, activation
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(784, 10), activation())

    def forward(self, x: Tensor) -> Any:
        return self.layers(x)


def test_a_default_that_no_file_could_hold_is_the_class_s_own() -> None:
    name = f"{__name__}.Net"
    config = compose([f"model={name}", "model.hidden=5"])
    assert set(config.model) == {"name", "hidden", "init_scale"}
    made = build("model", config.model, shape=(1, 8, 8), classes=10)
    assert made.made_of == ((1, 8, 8), 5, nn.ReLU)
    with pytest.raises(BadRequest, match=r"unknown key 'activation' of model=.*: .*hidden"):
        compose([f"model={name}", "model.activation=relu"])


def test_classes_that_say_little() -> None:
    class Silent:
        pass

    class OnlyForCheckers:
        def __init__(self, share: "Fraction") -> None:
            pass

    assert constructor_fields(Silent) == ([], False)
    assert [field.hint for field in constructor_fields(OnlyForCheckers)[0]] == [Any]
    assert constructor_fields(dict) == ([], True)
