"""Every attack, for the contract that all of them keep. A new attack adds one line."""

from collections.abc import Callable
from dataclasses import dataclass

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
    Span,
    ZeroGradient,
)
from lit_byz.robust import ARC, CWTM, NNM, RobustAggregator


@dataclass(frozen=True)
class Case:
    """``name`` is the registered one, with what sets this case apart behind a dash.

    ``distinct`` attackers send a vector each. ``copies``: the attack knows more than fits beside
    the honest vectors, and copies them.
    """

    name: str
    build: Callable[[], Attack]
    finite: bool = True
    distinct: bool = False
    copies: bool = False

    def shape(self, f: int, size: int) -> tuple[int, ...]:
        """Of what is sent, or of its coefficients."""
        return (f, size) if self.distinct else (size,)


CASES = [
    Case("none", NoAttack),
    Case("sf", SignFlip),
    Case("lf", LabelFlip),
    Case("lf-momentum", lambda: LabelFlip(momentum=True)),
    Case("mimic", lambda: Mimic(warmup=4)),
    Case("mimic-endless", lambda: Mimic(warmup=None)),
    Case("mimic-worker", lambda: Mimic(worker=0)),
    Case("foe-fixed", lambda: FOE(tau=3.0)),
    Case("foe-grid", FOE),
    Case("foe-line", lambda: FOE(search="line")),
    Case("foe-published", lambda: FOE(search="published")),
    Case("foe-coarse", lambda: FOE(search="coarse")),
    Case("alie-fixed", lambda: ALIE(tau=1.5)),
    Case("alie-grid", ALIE),
    Case("alie-line", lambda: ALIE(search="line")),
    Case("alie-published", lambda: ALIE(search="published")),
    Case("alie-coarse", lambda: ALIE(search="coarse")),
    Case("alie-z_max", lambda: ALIE(search="z_max")),
    Case("non_finite", NonFinite, finite=False),
    Case("gaussian", GaussianNoise),
    Case("zero", ZeroGradient),
    Case("min_max", MinMax),
    Case("min_max-sign", lambda: MinMax("sign")),
    Case("min_sum", MinSum),
    Case("min_sum-unit", lambda: MinSum("unit")),
    Case("span", lambda: Span(budget=400)),
    Case("span-descent", lambda: Span("descent", budget=400)),
    Case("span-drift", lambda: Span("drift", budget=400), copies=True),
    Case("span-more", lambda: Span(flipped=True, memory=True, budget=400), copies=True),
    Case("span-distinct", lambda: Span(distinct=True, budget=400), distinct=True),
]

H, F, D = 7, 2, 33
SERVER = RobustAggregator(CWTM(F), clip=ARC(F), mix=NNM(F))


def honest(
    step: int = 0, h: int = H, d: int = D, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """What the honest workers send at a step: noise around a mean."""
    draw = torch.Generator().manual_seed(100 + step)
    x = torch.randn(h, d, generator=draw) + 0.5 * torch.randn(d, generator=draw)
    return x.to(dtype)


def flipped(
    step: int = 0, h: int = H, d: int = D, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """Their gradients on flipped labels."""
    draw = torch.Generator().manual_seed(900 + step)
    return torch.randn(h, d, generator=draw).to(dtype)
