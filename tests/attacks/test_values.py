"""Each attack on three vectors of length two, by hand."""

import math

import pytest
import torch

from lit_byz.attacks import (
    ALIE,
    FOE,
    Attack,
    GaussianNoise,
    LabelFlip,
    Mimic,
    MinMax,
    MinSum,
    NoAttack,
    NonFinite,
    SignFlip,
    State,
    ZeroGradient,
)
from lit_byz.attacks._alie import z_max
from tests._each import each

# Mean (2, 2), standard deviations 1 and 2.
X = torch.tensor([[1.0, 0.0], [3.0, 2.0], [2.0, 4.0]], dtype=torch.float64)
# Mean (1, 1), standard deviations 1 and √3, squared distances 4, 10, 10.
TRIANGLE = torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]], dtype=torch.float64)
S2, S3 = math.sqrt(2), math.sqrt(3)


def assert_sends(attack: Attack, x: torch.Tensor, expected: tuple[float, float]) -> None:
    for dtype in (torch.float32, torch.float64):
        sent = attack(x.to(dtype), f=1)
        torch.testing.assert_close(sent, torch.tensor(expected, dtype=dtype), equal_nan=True)


@each(
    "attack, expected",
    [
        (NoAttack(), (2.0, 2.0)),
        (SignFlip(), (-2.0, -2.0)),
        (FOE(tau=0.0), (2.0, 2.0)),
        (FOE(tau=1.0), (0.0, 0.0)),
        (FOE(tau=3.5), (-5.0, -5.0)),
        (FOE(tau=-1), (4.0, 4.0)),
        (ALIE(tau=0.0), (2.0, 2.0)),
        (ALIE(tau=1.5), (3.5, 5.0)),
        (ALIE(tau=-2.0), (0.0, -2.0)),
        (ZeroGradient(), (0.0, 0.0)),
        (GaussianNoise(scale=0.0), (0.0, 0.0)),
        (NonFinite(), (math.nan, math.nan)),
        (NonFinite("inf"), (math.inf, math.inf)),
        (NonFinite("-inf"), (-math.inf, -math.inf)),
    ],
)
def test_by_hand(attack: Attack, expected: tuple[float, float]) -> None:
    assert_sends(attack, X, expected)


@each(
    "attack, factor, direction",
    [
        # γ² + 2√2 γ + 4 ≤ 10 at the third vector.
        (MinMax("unit"), S2, (-1 / S2, -1 / S2)),
        (MinMax("sign"), S2, (-1 / S2, -1 / S2)),
        # γ² + 2√3 γ + 4 ≤ 10 at the third vector.
        (MinMax("std"), 3 - S3, (-1 / 2, -S3 / 2)),
        # 3γ² + 8 ≤ 20, the sum from the third vector.
        (MinSum("unit"), 2.0, (-1 / S2, -1 / S2)),
        (MinSum("sign"), 2.0, (-1 / S2, -1 / S2)),
        (MinSum("std"), 2.0, (-1 / 2, -S3 / 2)),
    ],
)
def test_disguised_by_hand(attack: Attack, factor: float, direction: tuple[float, float]) -> None:
    expected = (1 + factor * direction[0], 1 + factor * direction[1])
    assert_sends(attack, TRIANGLE, expected)
    move, _ = attack.move(TRIANGLE, f=1)
    assert move.factor == pytest.approx(factor)


def test_sign_flip_is_foe_2() -> None:
    x = torch.randn(6, 40, generator=torch.Generator().manual_seed(1))
    assert torch.equal(FOE(tau=2.0)(x, f=2), SignFlip()(x, f=2))


def test_alie_divides_by_h_minus_1() -> None:
    x = torch.tensor([[0.0], [2.0]])
    torch.testing.assert_close(ALIE(tau=1.0)(x, f=1), torch.tensor([1 + S2]))


# Φ⁻¹((n − f − s)/(n − f)), s = ⌊n/2 + 1⌋ − f, with a table of the normal distribution.
@each(
    "n, f, z",
    [
        (50, 24, 1.4261),  # 24/26, the example in the attack's paper
        (11, 1, 0.0),  # 5/10
        (11, 5, 0.9674),  # 5/6
        (15, 4, 0.3488),  # 7/11
        (25, 11, 1.0676),  # 12/14
        (51, 12, 0.3612),  # 25/39
    ],
)
def test_classical_factor(n: int, f: int, z: float) -> None:
    assert z_max(n, f) == pytest.approx(z, abs=5e-4)
    x = torch.randn(n - f, 3, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    move, _ = ALIE(search="z_max").move(x, f)
    assert move.factor == z_max(n, f)
    torch.testing.assert_close(move.vector(), x.mean(0) + z_max(n, f) * x.std(0))


def test_given_factor_beats_any_search() -> None:
    assert ALIE(tau=1.5, search="z_max")(X, f=1).tolist() == [3.5, 5.0]


GRADIENTS = [
    torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]]),  # mean (3, 2)
    torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, -1.0]]),  # mean (1, 0)
]


def test_label_flip_sends_the_raw_mean() -> None:
    state: State = {}
    sent = [LabelFlip()(X, f=1, state=state, flipped=gradient) for gradient in GRADIENTS]
    assert [vector.tolist() for vector in sent] == [[3.0, 2.0], [1.0, 0.0]]
    assert not state


def test_label_flip_with_momentum() -> None:
    attack, state = LabelFlip(momentum=True, beta=0.5), {}
    sent = [attack(X, f=1, state=state, flipped=gradient) for gradient in GRADIENTS]
    assert [vector.tolist() for vector in sent] == [[1.5, 1.0], [1.25, 0.5]]
    assert state["momentum"].tolist() == [1.25, 0.5]


def test_label_flip_takes_the_mean_as_well() -> None:
    for gradient in GRADIENTS:
        sent = LabelFlip()(X, f=1, flipped=gradient.mean(0))
        assert torch.equal(sent, LabelFlip()(X, f=1, flipped=gradient))
        assert torch.equal(sent, LabelFlip()(X, f=1, flipped=list(gradient)))
        assert torch.equal(sent, LabelFlip()(X, f=1, flipped=gradient.numpy()))


@each("seed", range(6))
def test_mimic_on_a_line(seed: int) -> None:
    """All spread lies in the first coordinate: the target is one of the two ends."""
    x = torch.tensor([[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]])
    start = torch.randn(2, generator=torch.Generator().manual_seed(seed))
    end = 2 if start[0] > 0 else 0
    assert torch.equal(Mimic(seed=seed)(x, f=1), x[end])


def test_noise_is_what_it_says() -> None:
    x = torch.zeros(3, 20_000)
    sent = GaussianNoise(scale=3.0, seed=1)(x, f=1)
    assert float(sent.mean()) == pytest.approx(0, abs=0.1)
    assert float(sent.std()) == pytest.approx(3, rel=0.02)
    assert torch.equal(sent, GaussianNoise(scale=3.0, seed=1)(x, f=1))
    assert not torch.equal(sent, GaussianNoise(scale=3.0, seed=2)(x, f=1))
    later = GaussianNoise(scale=3.0, seed=1)(x, f=1, step=1)
    assert abs(float(torch.corrcoef(torch.stack([sent, later]))[0, 1])) < 0.05
