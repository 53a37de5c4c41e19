"""Min-Max and Min-Sum go exactly as far as their disguise allows."""

import numpy as np
import pytest
import torch

from lit_byz.attacks import MinMax, MinSum
from tests._each import each
from tests.attacks._reference import disguised

ATTACKS = {"max": MinMax, "sum": MinSum}
FAMILIES = {
    "gaussian": lambda rng: rng.normal(size=(7, 20)) + 0.5,
    "near": lambda rng: 100 + rng.normal(size=(7, 20)),
    "unequal": lambda rng: rng.normal(size=(7, 20)) * np.logspace(-2, 2, 7)[:, None],
    "two": lambda rng: rng.normal(size=(2, 5)),
}


def allowed(x: np.ndarray, sent: np.ndarray, kind: str) -> tuple[float, float]:
    """The distances that count, from what is sent and among the honest."""
    summed = {"max": np.max, "sum": np.sum}[kind]
    among = [summed([((a - b) ** 2).sum() for b in x]) for a in x]
    return float(summed([((sent - a) ** 2).sum() for a in x])), float(max(among))


@each("family", FAMILIES)
@each("perturbation", ["std", "unit", "sign"])
@pytest.mark.parametrize("kind", ATTACKS)
def test_farthest_allowed(kind: str, perturbation: str, family: str, either_path: str) -> None:
    for seed in range(5):
        x = FAMILIES[family](np.random.default_rng(seed))
        move, restore = ATTACKS[kind](perturbation).move(x, f=1)
        sent = restore(move.vector())
        found, limit = allowed(x, sent, kind)
        assert found == pytest.approx(limit, rel=1e-9)
        direction, factor = disguised(x, perturbation, kind)
        assert move.factor == pytest.approx(factor, rel=1e-9)
        np.testing.assert_allclose(sent, x.mean(axis=0) + factor * direction, rtol=1e-9)
        farther = x.mean(axis=0) + 1.001 * factor * direction
        assert allowed(x, farther, kind)[0] > limit


@pytest.mark.parametrize("kind", ATTACKS)
def test_no_room_and_no_direction(kind: str) -> None:
    same = torch.full((4, 3), 2.0)
    assert torch.equal(ATTACKS[kind]()(same, f=1), same[0])
    opposed = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    assert torch.equal(ATTACKS[kind]("unit")(opposed, f=1), torch.zeros(2))
