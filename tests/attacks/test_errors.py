"""Bad settings: one line that names the attack, the argument, its value and what is allowed."""

import math
import re
from collections.abc import Callable

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
    NonFinite,
    SearchedAttack,
)
from tests._each import each

ARGUMENTS: list[tuple[Callable[[], Attack], type[Exception], str, str, object]] = [
    (lambda: FOE(tau=math.nan), ValueError, "FOE", "tau", "nan"),
    (lambda: FOE(tau=math.inf), ValueError, "FOE", "tau", "inf"),
    (lambda: FOE(tau="2"), TypeError, "FOE", "tau", "'2'"),  # type: ignore[arg-type]
    (lambda: FOE(search="z_max"), ValueError, "FOE", "search", "'z_max'"),  # type: ignore[arg-type]
    (lambda: ALIE(search="zmax"), ValueError, "ALIE", "search", "'zmax'"),  # type: ignore[arg-type]
    (lambda: FOE(low=3.0, high=3.0), ValueError, "FOE", "high", "3.0"),
    (lambda: FOE(high=math.inf), ValueError, "FOE", "high", "inf"),
    (lambda: ALIE(low=-math.inf), ValueError, "ALIE", "low", "-inf"),
    (lambda: FOE(points=2), ValueError, "FOE", "points", "2"),
    (lambda: FOE(high=-1), ValueError, "FOE", "high", "-1.0"),
    (lambda: FOE(evaluations=20), ValueError, "FOE", "evaluations", "20"),
    (lambda: FOE(None, "line", evaluations=2.5), TypeError, "FOE", "evaluations", "2.5"),  # type: ignore[arg-type]
    (lambda: FOE(None, "published", evaluations=2), ValueError, "FOE", "evaluations", "2"),
    (lambda: FOE(None, "published", points=5), ValueError, "FOE", "points", "5"),
    (lambda: ALIE(None, "published", low=-1.0), ValueError, "ALIE", "low", "-1.0"),
    (lambda: ALIE(None, "published", high=9.0), ValueError, "ALIE", "high", "9.0"),
    (lambda: FOE(None, "coarse", evaluations=5), ValueError, "FOE", "evaluations", "5"),
    (lambda: FOE(None, "coarse", low=10.0), ValueError, "FOE", "high", "10.0"),
    (lambda: FOE(None, "coarse", points=True), TypeError, "FOE", "points", "True"),
    (lambda: ALIE(None, "coarse", low=-5.0), ValueError, "ALIE", "low", "-5.0"),
    (lambda: ALIE(None, "coarse", points=7), ValueError, "ALIE", "points", "7"),
    (lambda: ALIE(None, "z_max", points=7), ValueError, "ALIE", "points", "7"),
    (lambda: Mimic(warmup=0), ValueError, "Mimic", "warmup", "0"),
    (lambda: Mimic(seed=-1), ValueError, "Mimic", "seed", "-1"),
    (lambda: Mimic(worker=-1), ValueError, "Mimic", "worker", "-1"),
    (lambda: Mimic(worker=1.0), TypeError, "Mimic", "worker", "1.0"),  # type: ignore[arg-type]
    (lambda: Mimic(worker=True), TypeError, "Mimic", "worker", "True"),
    (lambda: GaussianNoise(scale=-1.0), ValueError, "GaussianNoise", "scale", "-1.0"),
    (lambda: GaussianNoise(seed=1.5), TypeError, "GaussianNoise", "seed", "1.5"),  # type: ignore[arg-type]
    (lambda: LabelFlip(beta=1.5), ValueError, "LabelFlip", "beta", "1.5"),
    (lambda: MinMax("best"), ValueError, "MinMax", "perturbation", "'best'"),  # type: ignore[arg-type]
    (lambda: MinSum("Std"), ValueError, "MinSum", "perturbation", "'Std'"),  # type: ignore[arg-type]
    (lambda: NonFinite("zero"), ValueError, "NonFinite", "value", "'zero'"),  # type: ignore[arg-type]
]


@each("build, error, owner, name, value", ARGUMENTS)
def test_bad_settings(
    build: Callable[[], Attack], error: type[Exception], owner: str, name: str, value: str
) -> None:
    with pytest.raises(error) as caught:
        build()
    message = str(caught.value)
    assert re.search(rf"^{owner}: {name} must be .*{re.escape(value)}$", message), message


@each("h, worker", [(1, 1), (3, 3), (3, 50)])
def test_a_worker_that_does_not_exist(h: int, worker: int) -> None:
    expected = f"Mimic: worker must be one of the {h} honest workers, 0 to {h - 1}, got {worker}"
    with pytest.raises(ValueError, match=f"^{expected}$"):
        Mimic(worker=worker)(torch.ones(h, 2), f=1)


def test_flipped_gradients_must_be_given() -> None:
    with pytest.raises(ValueError, match="LabelFlip: flipped must be given"):
        LabelFlip()(torch.ones(3, 2), f=1)


@each("shape", [(3,), (2, 2), (3, 3), (1, 3, 2), ()])
def test_flipped_gradients_of_another_shape(shape: tuple[int, ...]) -> None:
    expected = (
        rf"LabelFlip: flipped must have shape \(3, 2\) or \(2,\), got {re.escape(str(shape))}"
    )
    with pytest.raises(ValueError, match=expected):
        LabelFlip()(torch.ones(3, 2), f=1, flipped=torch.ones(shape))


@each("h, f", [(1, 1), (2, 2), (2, 5)])
def test_classical_factor_needs_an_honest_majority(h: int, f: int) -> None:
    with pytest.raises(ValueError, match=rf"ALIE: f must satisfy 2f < n, got f={f}, n={h + f}"):
        ALIE(search="z_max")(torch.randn(h, 3), f)


def test_every_vector_is_non_finite() -> None:
    with pytest.raises(ValueError, match="FOE: every row of x is non-finite"):
        FOE()(torch.full((3, 2), torch.nan), f=1)


def test_a_subclass_that_says_nothing() -> None:
    class Silent(Attack):
        pass

    class Aimless(SearchedAttack):
        pass

    for attack, words in ((Silent(), "what it sends"), (Aimless(), "along which line")):
        with pytest.raises(TypeError, match=words):
            attack(torch.ones(3, 2), f=1)
