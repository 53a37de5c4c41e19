"""Components by name and by dotted path."""

import pytest

from lit_byz.errors import BadRequest
from lit_byz.registry import Registry, nearest


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
