"""Numbers that can be checked by hand, and the paper's small examples."""

import math

import pytest
import torch

from lit_byz.robust import (
    ARC,
    CAF,
    CWTM,
    MDA,
    NNM,
    SMEA,
    Average,
    Bucketing,
    CenteredClipping,
    CWMed,
    GeometricMedian,
    Krum,
    MeaMed,
    MoNNA,
    MultiKrum,
    RobustAggregator,
    StaticClip,
)

# f = 1; the third vector is the farthest from 0.
CORNERS = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def near(output: torch.Tensor, *values: float) -> bool:
    return torch.allclose(output, torch.tensor(values, dtype=output.dtype), atol=1e-6)


def test_trimmed_mean_and_median_of_three_corners() -> None:
    assert near(CWTM(f=1)(CORNERS), 1, 1)
    assert near(CWMed()(CORNERS), 1, 1)
    assert near(MeaMed(f=1)(CORNERS), 1, 1)


def test_trimmed_mean_after_mixing_three_corners() -> None:
    """(1, 1) is as near to (0, 1) as to (1, 0): a tie with two right answers."""
    output = RobustAggregator(CWTM(f=1), mix=NNM(f=1))(CORNERS)
    assert near(output, 0.5, 1) or near(output, 1, 0.5)


def test_geometric_median_of_three_corners_is_their_fermat_point() -> None:
    rule = GeometricMedian(nu=1e-9, iterations=1000, tolerance=1e-12)
    coordinate = 0.5 + 1 / math.sqrt(12)
    output = rule(CORNERS.double())
    assert near(output, coordinate, coordinate)
    assert float(output.norm()) == pytest.approx(1.115, abs=1e-3)


def test_rules_on_a_line() -> None:
    x = torch.tensor([[0.0], [1.0], [2.0], [4.0], [100.0]])
    assert near(Average()(x), 21.4)
    assert near(CWTM(f=1)(x), 7 / 3)
    assert near(CWTM(f=2)(x), 2)
    assert near(CWMed()(x), 2)
    assert near(CWMed()(x[:4]), 1.5)
    assert near(MeaMed(f=1)(x), 7 / 4)
    assert near(MeaMed(f=2)(x), 1)
    assert near(Krum(f=2)(x), 1)  # scores 5, 2, 5, 13, …: the two nearest others, squared
    assert near(MultiKrum(f=2)(x), 1)
    assert near(MDA(f=1)(x), 7 / 4)
    assert near(MDA(f=2)(x), 1)
    assert near(SMEA(f=1)(x), 7 / 4)
    assert near(SMEA(f=2)(x), 1)
    assert near(MoNNA(f=1)(x), 7 / 4)
    assert near(MoNNA(f=2)(x), 1)
    assert near(MoNNA(f=2, pivot=3)(x), 7 / 3)  # 4 and its nearest, 2 and 1
    assert near(MoNNA(f=2, pivot=4)(x), 106 / 3)  # who trusts 100 gets 100, 4 and 2
    # The far vector's weight goes to 0; the others keep 1 − (21.4 − x)²/78.6², 3.749 of them.
    assert near(CAF(f=1)(x), 1.7646058)
    # 0 → (0 + 1 + 2 + 2 + 2)/5 = 1.4 → 1.4 + (−1.4 − 0.4 + 0.6 + 2 + 2)/5
    assert near(CenteredClipping(tau=2.0, iterations=1)(x), 1.4)
    assert near(CenteredClipping(tau=2.0, iterations=2)(x), 1.96)
    # Weights 1/max(ν, distance to 0) with ν = 1: 1, 1, 1/2, 1/4, 1/100.
    assert near(GeometricMedian(nu=1.0, iterations=1)(x), 4 / 2.76)


def test_main_variance_is_not_the_diameter() -> None:
    """Two equal vectors and one 2 away have diameter 2 and variances 8/9, 0; the triangle has
    diameter 2.06 and variances 0.667, 0.72."""
    x = torch.tensor([[0.0, 0.0], [2.0, 0.0], [2.0, 0.0], [1.0, 1.8]])
    assert near(MDA(f=1)(x), 4 / 3, 0)
    assert near(SMEA(f=1)(x), 1, 0.6)


def test_clips() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0], [-6.0, 8.0]])
    assert torch.allclose(
        StaticClip(2.5)(x), torch.tensor([[1.5, 2.0], [0.0, 0.0], [0.0, 1.0], [-1.5, 2.0]])
    )
    assert torch.equal(StaticClip(0.0)(x), torch.zeros(4, 2))
    # n = 4, f = 1: k = ⌊2 · 1/4 · 3⌋ = 1, so the threshold is the second largest norm, 5.
    assert torch.allclose(
        ARC(f=1)(x), torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0], [-3.0, 4.0]])
    )
    assert torch.equal(ARC(f=0)(x), x)


def test_mixing() -> None:
    x = torch.tensor([[0.0], [1.0], [3.0], [10.0]])
    assert torch.allclose(NNM(f=1)(x), torch.tensor([[4 / 3], [4 / 3], [4 / 3], [14 / 3]]))
    assert torch.equal(Bucketing(s=1)(x).sort(dim=0).values, x)
    assert torch.allclose(Bucketing(s=4)(x), torch.tensor([[3.5]]))
