"""What runs have cost, taken apart."""

import pytest

from lit_byz.tracking.tracked_costs import OVERHEAD, _cost


def test_what_every_run_takes_is_no_evaluation() -> None:
    """A run's files and figures cost the same, however often another is evaluated."""
    short = {"train.steps": "20", "train.eval_every": "5"}
    found = _cost(20 * 0.01 + OVERHEAD, 100.0, short)
    assert found is not None
    assert (found.step, found.run) == (0.01, pytest.approx(OVERHEAD))
    assert found.evaluation == pytest.approx(0, abs=1e-9)
    longer = _cost(20 * 0.01 + OVERHEAD + 4 * 0.25, 100.0, short)
    assert longer is not None
    assert longer.evaluation == pytest.approx(0.25)
