"""Vectors at the end of what float32 can hold, as they come up where nothing is clipped."""

import pytest
import torch

from lit_byz.attacks import ALIE, FOE, Attack, Span
from lit_byz.robust import ARC, CWTM, NNM, Clip, NoClip, RobustAggregator
from lit_byz.robust._basis import coordinate_spread
from tests._each import each


@each("attack", [FOE(), ALIE(), Span()])
@each("clip", [NoClip(), ARC(f=1)])
def test_finite_vectors_whose_squares_overflow(attack: Attack, clip: Clip) -> None:
    honest = torch.randn(6, 20_000, generator=torch.Generator().manual_seed(1))
    honest[:, 7] = torch.tensor([3e38, -3e38] * 3)
    server = RobustAggregator(CWTM(f=1), clip=clip, mix=NNM(f=1))
    sent = attack(honest, f=1, server=server)
    assert torch.isfinite(server(torch.cat([honest, sent.unsqueeze(0)]))).all()


def test_spread_of_large_numbers() -> None:
    rows = torch.tensor([[3e38, 1.0], [-3e38, 2.0], [3e38, 3.0]])
    mean, deviation = coordinate_spread(rows)
    assert mean.tolist() == pytest.approx([1e38, 2.0], rel=1e-6)
    assert deviation.tolist() == pytest.approx([torch.finfo(torch.float32).max, 1.0], rel=0.02)
