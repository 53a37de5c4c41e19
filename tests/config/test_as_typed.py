"""Settings given in Python, as the command line has them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lit_byz.config.as_typed import as_typed
from lit_byz.config.compose import compose
from lit_byz.errors import BadRequest
from lit_byz.robust import CWTM, Rule

WORDS = ["train.steps=5", "seed=3"]


class Own(Rule):
    """A class outside the registry."""

    class Inner(Rule):
        """One that no dotted path reaches."""


@pytest.mark.parametrize("kind", [list, tuple, iter, lambda words: map(str, words)])
def test_words_of_any_kind(kind: Callable[[list[str]], Any]) -> None:
    assert as_typed(kind(WORDS)) == WORDS


def test_a_generator_is_not_forgotten() -> None:
    config = compose(as_typed(word for word in ["seed=7", "train.steps=11"]))
    assert (config.seed, config.train.steps) == (7, 11)


@pytest.mark.parametrize("given", [None, 3, "seed=1", np.array(1.0)])
def test_no_settings_at_all(given: Any) -> None:
    with pytest.raises(BadRequest, match=r"^settings = .*: must be a list of key=value, or a map"):
        as_typed(given)


def test_paths() -> None:
    assert as_typed({"data": {"root": Path("a/b")}}) == ['data.root="a/b"']
    assert as_typed({"data.root": [Path("a"), Path("b")]}) == ['data.root=["a", "b"]']


def test_numbers_that_are_not_finite() -> None:
    given = {"a": [1.0, np.inf], "b": np.array([np.nan]), "c": np.float32("-inf"), "d": {}}
    typed = ["a=[1.0, .inf]", "b=[.nan]", "c=-.inf", "d={}"]
    assert as_typed(given) == typed


def test_classes_are_named() -> None:
    assert as_typed({"rule": Own}) == [f'rule="{__name__}.Own"']
    assert as_typed({"rule": {"name": Own}}) == [f'rule.name="{__name__}.Own"']
    assert as_typed({"rule": [CWTM, Own]}) == [f'rule=["cwtm", "{__name__}.Own"]']
    assert as_typed({"rule": Rule}) == ['rule="lit_byz.robust._base.Rule"']


def test_inner_classes_have_no_name() -> None:
    class Local(Rule):
        pass

    for kind in (Own.Inner, Local):
        with pytest.raises(BadRequest, match="cannot be named; put it at the top") as caught:
            as_typed({"rule": kind})
        assert kind.__qualname__ in str(caught.value)
        assert "\n" not in str(caught.value)
