"""ByzFL's clips, mixes and rules beside ours, with the same settings."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import torch

from lit_byz._streams import Stream, seed_torch
from lit_byz.errors import BadRequest
from lit_byz.robust import (
    ARC,
    CAF,
    CWTM,
    MDA,
    NNM,
    SMEA,
    Average,
    CenteredClipping,
    CWMed,
    GeometricMedian,
    Krum,
    MeaMed,
    MoNNA,
    MultiKrum,
    NoClip,
    RobustAggregator,
    Rule,
)

VERSION = "0.0.11"
TAU = 10.0

Step = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Pair:
    """One rule in both libraries, made for a number f of Byzantine workers."""

    ours: Callable[[int], Rule]
    theirs: Callable[[Any, int], Step]
    """From the module ``byzfl`` and f; made anew for each call, as some remember the last one."""
    same: bool = True
    """Whether the definitions agree, so that outputs can be compared."""
    mixes: bool = True
    """Whether theirs can be timed after NNM."""


def _seeded(step: Step) -> Step:
    def aggregate(x: torch.Tensor) -> torch.Tensor:
        seed_torch(0, Stream.BENCHMARKS)
        return step(x)

    return aggregate


PAIRS: dict[str, Pair] = {
    "average": Pair(lambda f: Average(), lambda b, f: b.Average()),
    "cwtm": Pair(CWTM, lambda b, f: b.TrMean(f=f)),
    "cwmed": Pair(lambda f: CWMed(), lambda b, f: b.Median()),
    "gm": Pair(lambda f: GeometricMedian(), lambda b, f: b.GeometricMedian(nu=0.1, T=3)),
    "krum": Pair(Krum, lambda b, f: b.Krum(f=f)),
    "multi_krum": Pair(MultiKrum, lambda b, f: b.MultiKrum(f=f)),
    "meamed": Pair(MeaMed, lambda b, f: b.Meamed(f=f)),
    "mda": Pair(MDA, lambda b, f: b.MDA(f=f)),
    "centered_clipping": Pair(
        lambda f: CenteredClipping(TAU, 1), lambda b, f: b.CenteredClipping(L=1, tau=TAU)
    ),
    # One power iteration from a random vector there, the exact direction here. After mixing theirs
    # may never end: vectors that lost all weight still set the scale by which the others lose it.
    "caf": Pair(CAF, lambda b, f: _seeded(b.CAF(f=f)), same=False, mixes=False),
    "monna": Pair(MoNNA, lambda b, f: b.MoNNA(f=f)),
    # One power iteration from a random vector for each subset there, exact eigenvalues here.
    "smea": Pair(SMEA, lambda b, f: _seeded(b.SMEA(f=f)), same=False),
}


def load() -> Any:
    """The module ``byzfl``, of the version that ratios are quoted against."""
    try:
        import byzfl
    except ImportError as error:
        advice = "install lit_byz[bench]"
        raise BadRequest(f"the benchmark compares with byzfl: {error}; {advice}") from error
    if version("byzfl") != VERSION:
        raise BadRequest(f"byzfl {version('byzfl')} is installed; ratios are against {VERSION}")
    return byzfl


def our_server(name: str, f: int, *, arc: bool, nnm: bool) -> RobustAggregator:
    """Our server with this rule."""
    return RobustAggregator(
        PAIRS[name].ours(f), clip=ARC(f) if arc else NoClip(), mix=NNM(f) if nnm else None
    )


def their_server(byzfl: Any, name: str, f: int, *, arc: bool, nnm: bool) -> Step:
    """ByzFL's server with the same rule."""

    def aggregate(x: torch.Tensor) -> torch.Tensor:
        if arc:
            x = byzfl.ARC(f=f)(x)
        if nnm:
            x = byzfl.NNM(f=f)(x)
        return PAIRS[name].theirs(byzfl, f)(x)

    return aggregate


def mixing_bytes(n: int, f: int, d: int) -> int:
    """What ByzFL's NNM allocates: every vector's n − f neighbours, gathered."""
    return 4 * n * (n - f) * d
