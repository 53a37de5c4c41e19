"""YAML as plain data: what is read, what is refused, and that nothing takes long."""

import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lit_byz.config.plain_yaml import DEEPEST, LARGEST, NotPlain, check, read, write
from tests._each import each

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"))
PLAIN = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-LARGEST, LARGEST), st.floats(allow_nan=False), TEXT
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(TEXT, inner)),
    max_leaves=20,
)


@given(PLAIN)
def test_what_is_written_reads_back(plain: Any) -> None:
    assert read(write(plain)) == plain
    check(plain)


@each(
    "text, value",
    [
        ("", None),
        ("1e-3", 1e-3),
        ("-.5", -0.5),
        ("1_000", 1000),
        ("0x1F", 31),
        ("010", 8),
        ("yes", True),
        ("~", None),
        (".inf", math.inf),
        ("2025-01-01", "2025-01-01"),
        ("1:30", "1:30"),
        ("=", "="),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("!!float 5", 5.0),
        ("{a: [b, {c: d}]}", {"a": ["b", {"c": "d"}]}),
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", {"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}}),
        ("b: {<<: [{p: 1}, {p: 2, q: 3}]}", {"b": {"p": 1, "q": 3}}),
        ("<<", "<<"),
        ("a: ${b.c}", {"a": "${b.c}"}),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert repr(read(text)) == repr(value)


@each(
    "text, reason",
    [
        ("!!python/object/apply:os.system [ls]", "has the tag !!python/object/apply:os.system;"),
        ("!!python/name:os.system", "has the tag !!python/name:os.system;"),
        ("!!timestamp 2025-01-01", "has the tag !!timestamp;"),
        ("!!binary aGk=", "has the tag !!binary;"),
        ("!!set {a}", "has the tag !!set;"),
        ("!own [a]", "has the tag !own;"),
        ("!!map a", "has the tag !!map;"),
        ("!!int x", "has 'x' for !!int"),
        ("!!bool x", "has 'x' for !!bool"),
        ("!!float x", "has 'x' for !!float"),
        ("0x_", "has '0x_' for a number"),
        ("9" * 5000, "has an integer of 5000 digits; integers must be between"),
        ("0x" + "f" * 5000, "has an integer of 5002 digits; integers must be between"),
        (str(LARGEST + 1), f"has the integer {LARGEST + 1}; integers must be between"),
        ("{0}", "has the key 0, which is no text"),
        ("{yes: 1}", "has the key True, which is no text"),
        ("{[a]: 1}", "has the key ..., which is no text"),
        ("{a: 1, a: 2}", "has the key 'a' twice"),
        ("{<<: 5}", "has << with something else than a mapping"),
        ("\ud800", r"has the character '\ud800', which is no text"),
        ('"\\0"', r"has the character '\x00', which is no text"),
        ('"\\e[31m"', r"has the character '\x1b', which is no text"),
        ("a: &a [*a]", "has the alias *a for nothing, or inside of itself"),
        ("--- a\n--- b", "has more than one document"),
        ("[1", "is not valid YAML: did not find expected ',' or ']'"),
        ("a: 1\nb: c: d", "is not valid YAML: mapping values are not allowed in this context in l"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(NotPlain) as caught:
        read(text)
    assert str(caught.value).startswith(reason), str(caught.value)
    assert "\n" not in str(caught.value)


def bomb(form: str, levels: int = 30) -> str:
    """Aliases of aliases: a billion values in a few lines."""
    lines = [f"a0: &a0 {'[x]' if form == 'lists' else '{x: 1}'}"]
    for level in range(1, levels):
        many = ", ".join(8 * [f"*a{level - 1}"])
        lines.append(
            f"a{level}: &a{level} {f'[{many}]' if form == 'lists' else f'{{<<: [{many}]}}'}"
        )
    return "\n".join(lines)


@each(
    "text",
    [
        *("[" * 500_000, "{a: " * 200_000, "- " * 400_000, "? " * 400_000, "!!a " * 200_000),
        *("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "&a " * 200_000, "x" * 1_000_001),
        *(bomb("lists"), bomb("mappings"), "[" + "1," * 200_000 + "]"),
    ],
)
def test_what_is_too_much_is_refused_at_once(text: str) -> None:
    begin = time.process_time()
    with pytest.raises(NotPlain):
        read(text)
    assert time.process_time() - begin < 2


@each(
    "value",
    [object(), {1: 2}, [b""], {"a": {1, 2}}, "\ud800", 2**63, -(2**70), [[["\x00"]]], 10**5000],
)
def test_what_is_no_plain_data(value: Any) -> None:
    with pytest.raises(NotPlain):
        check(value)


def test_data_that_holds_itself() -> None:
    inside: list[Any] = []
    inside.append(inside)
    with pytest.raises(NotPlain, match="too deep"):
        check(inside)
