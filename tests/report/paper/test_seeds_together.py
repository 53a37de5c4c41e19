"""Several seeds in one curve, and the best of several methods over all of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from lit_byz.report.paper.curves import curve_of
from lit_byz.report.paper.experiment import find
from lit_byz.report.paper.measures import Measured, _best
from lit_byz.tracking.evaluations import INITIAL
from tests.report.paper._small import furnish
from tests.report.paper.test_render import made_up


def history(run_id: str, key: str) -> list[tuple[int, float]]:
    """One run diverged between two evaluations of the other."""
    if key == INITIAL:
        return [(999, 0.09)]  # as older files have brought it in: it is that of step 0
    return [(0, 0.5), (6, 0.1)] if "diverged" in run_id else [(0, 0.2), (4, 0.4), (8, 0.6)]


def test_between_evaluations_a_seed_has_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(tmp_path, monkeypatch)
    found = made_up(find("paper/curves"), diverged="rule=gm, clip=none | foe | seed 1")
    found = replace(found, history=history)
    cell = next(c for c in found.methods if c.example.cell == "rule=gm, clip=none")
    assert curve_of(found, cell.runs("foe"), cell, "test/accuracy") == {
        **{0: [0.09, 0.09], 1: [0.5, 0.2], 5: [0.5, 0.4], 7: [0.1, 0.4], 9: [0.1, 0.6]}
    }


def test_the_best_of_several_is_one_of_them_for_all_seeds() -> None:
    first = Measured({1: (0.8, 0.8), 2: (0.6, 0.6)})
    other = Measured({1: (0.5, 0.5), 2: (0.8, 0.8)})
    assert _best([first, other]) == Measured({1: (0.8, 0.8), 2: (0.6, 0.6)}, frozenset())
    # A seed that is begun decides nothing, and is left out later.
    begun = Measured({**other.by_seed, 3: (0.0, 0.9)}, {3})
    assert _best([Measured({**first.by_seed, 3: (0.1, 0.1)}), begun]).settled().by_seed == {
        **{1: (0.8, 0.8), 2: (0.6, 0.6)}
    }
    # Which is the best is open: it is at least the one, and at most the other.
    assert _best([first, Measured({1: (0.0, 0.9)})]).by_seed == {1: (0.8, 0.9)}
