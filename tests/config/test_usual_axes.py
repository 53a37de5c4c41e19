"""The axes that a study takes by itself: an argument of a group does not choose an option."""

import pytest

from lit_byz.config.grid import points
from lit_byz.config.grid_source import read_grid
from lit_byz.config.search_space import ATTACKS
from lit_byz.errors import BadRequest

USUAL = {"clip": ["none", "arc"], "attack": ATTACKS}


def labels(*settings: str) -> list[str]:
    found = points(read_grid(["dataset=digits", "model=logreg", *settings], "none", USUAL))
    return [f"{point.cell} | {point.attack}" for point in found]


def test_an_argument_goes_to_the_attacks_that_have_it() -> None:
    coarse = ["sf", "lf", "mimic", "foe@coarse", "alie@coarse"]
    expected = [f"clip={clip} | {attack}" for clip in ("none", "arc") for attack in coarse]
    assert labels("attack.search=coarse") == expected
    assert len(labels("clip.zeta=2")) == 10


def test_an_option_that_is_chosen_counts() -> None:
    assert labels("attack=foe", "attack.search=coarse", "clip=arc") == [" | foe@coarse"]
    assert labels("attack={name: foe, tau: 2}", "clip=arc") == [" | foe, tau=2"]


def test_an_argument_that_no_option_has_is_refused() -> None:
    with pytest.raises(BadRequest, match=r"clip\.C: no option of clip=\[none,arc\] has it"):
        labels("clip.C=2")
