"""Every rule beside its naive reference and the properties it has. A new rule adds one entry."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
    StaticClip,
)
from tests.robust import _reference as reference
from tests.robust._reference import Answer

Array = np.ndarray
C = 3.0
TAU = 2.0


# Properties that not every rule has.
TRANSLATION, ROTATION, COORDINATES = "translation", "rotation", "coordinates"
IDEMPOTENT, ROBUST, SYMMETRIC = "idempotent", "robust", "symmetric"
SELECTIVE = {TRANSLATION, ROTATION, IDEMPOTENT, ROBUST, SYMMETRIC}
COORDINATEWISE = {TRANSLATION, COORDINATES, IDEMPOTENT, ROBUST, SYMMETRIC}


@dataclass(frozen=True)
class Case:
    """``build(f, unit)`` makes the rule, ``unit`` multiplying whatever length it is built with."""

    name: str
    build: Callable[[int, float], Rule]
    answers: Callable[[Array, int], Sequence[Answer]]
    has: Collection[str]
    most_n: int = 60

    def rule(self, f: int, unit: float = 1.0) -> Rule:
        return self.build(f, unit)


def _gm(x: Array, f: int) -> list[Array]:
    return reference.geometric_median(x, nu=0.1, iterations=3)


def _cc(x: Array, f: int) -> list[Array]:
    return reference.centered_clipping(x, TAU, iterations=3)


CASES = [
    Case(
        "average", lambda f, u: Average(), lambda x, f: reference.average(x), SELECTIVE - {ROBUST}
    ),
    Case("cwtm", lambda f, u: CWTM(f), reference.cwtm, COORDINATEWISE),
    Case("cwmed", lambda f, u: CWMed(), lambda x, f: reference.cwmed(x), COORDINATEWISE),
    Case("meamed", lambda f, u: MeaMed(f), reference.meamed, COORDINATEWISE),
    Case("gm", lambda f, u: GeometricMedian(nu=0.1 * u), _gm, {ROTATION, IDEMPOTENT, SYMMETRIC}),
    Case("krum", lambda f, u: Krum(f), reference.krum, SELECTIVE),
    Case("multi_krum", lambda f, u: MultiKrum(f), reference.multi_krum, SELECTIVE),
    Case("mda", lambda f, u: MDA(f), reference.mda, SELECTIVE, most_n=11),
    Case(
        "centered_clipping", lambda f, u: CenteredClipping(TAU * u, 3), _cc, {ROTATION, SYMMETRIC}
    ),
    Case("caf", lambda f, u: CAF(f), reference.caf, SELECTIVE),
    # Robust where the pivot, the first row, is honest: test_monna.py.
    Case("monna", lambda f, u: MoNNA(f), reference.monna, SELECTIVE - {ROBUST, SYMMETRIC}),
    Case("smea", lambda f, u: SMEA(f), reference.smea, SELECTIVE, most_n=11),
]


def having(trait: str) -> list[Case]:
    return [case for case in CASES if trait in case.has]


by_name = {case.name: case for case in CASES}

CLIPS: dict[str, tuple[Callable[[int], Any], Callable[[Array, int], Array]]] = {
    "none": (lambda f: NoClip(), lambda x, f: x),
    "static": (lambda f: StaticClip(C), lambda x, f: reference.clip_at(x, C)),
    "arc": (ARC, reference.arc),
}
MIXES: dict[str, tuple[Callable[[int], Any], Callable[[Array, int], Array]]] = {
    "none": (lambda f: None, lambda x, f: x),
    "nnm": (NNM, reference.nnm),
}


def server(
    case: Case, f: int, clip: str = "none", mix: str = "none", bound_output: bool = False
) -> RobustAggregator:
    return RobustAggregator(
        case.rule(f), clip=CLIPS[clip][0](f), mix=MIXES[mix][0](f), bound_output=bound_output
    )


def answers(
    case: Case, x: Array, f: int, clip: str = "none", mix: str = "none"
) -> Sequence[Answer]:
    """What the composition may answer, by the references."""
    return case.answers(MIXES[mix][1](CLIPS[clip][1](reference.exact(x), f), f), f)
