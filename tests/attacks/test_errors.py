"""Bad settings: one line that names the attack, the argument, its value and what is allowed."""

import math
import re
from collections.abc import Callable

import numpy as np
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
from lit_byz.robust import ARC, CWTM, RobustAggregator
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


@each("flipped", ["gradients", 3.0, [1.0, 2.0], [[1.0, "2"]] * 3, np.ones((3, 2), complex)])
def test_flipped_gradients_that_are_none(flipped: object) -> None:
    with pytest.raises(TypeError, match="LabelFlip: flipped must "):
        LabelFlip()(torch.ones(3, 2), f=1, flipped=flipped)


def test_flipped_gradients_of_any_kind() -> None:
    honest, flipped = torch.ones(3, 2), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]])
    for given in (flipped, flipped.numpy(), flipped.tolist(), list(flipped), flipped.mean(0)):
        assert LabelFlip()(honest, f=1, flipped=given).tolist() == [3.0, 5.0]


@each("honest", ["vectors", 3.0, [1.0, 2.0], np.ones((3, 2), complex)])
def test_honest_vectors_that_are_none(honest: object) -> None:
    with pytest.raises(TypeError, match="FOE: honest must "):
        FOE()(honest, f=1)


@each("server", [lambda x: x.mean(0), "cwtm", CWTM, ARC(1)])
@each("attack", [FOE(), FOE(tau=1.0), Mimic()])
def test_servers_that_are_none(attack: Attack, server: object) -> None:
    kind = type(server).__name__
    expected = f"{type(attack).__name__}: server must be a RobustAggregator, or a rule alone, got a"
    with pytest.raises(TypeError, match=f"^{expected} {kind}$"):
        attack(torch.ones(3, 2), f=1, server=server)  # type: ignore[arg-type]


@each("attack", [FOE(), ALIE(), Mimic()])
def test_a_rule_alone_is_a_server(attack: Attack) -> None:
    honest = torch.tensor([[1.0, 0.0], [1.0, 0.5], [0.5, 0.0], [1.0, 1.0]])
    alone, server = (attack(honest, 1, s) for s in (CWTM(1), RobustAggregator(CWTM(1))))
    assert torch.equal(alone, server)


def test_numbers_of_numpy() -> None:
    honest = torch.tensor([[1.0, 0.0], [1.0, 0.5], [0.5, 0.0], [1.0, 1.0]])
    for own, known in (
        (FOE(points=np.int64(20), high=np.float32(8)), FOE(points=20, high=8.0)),  # type: ignore[arg-type]
        (FOE(tau=np.int32(3)), FOE(tau=3.0)),
        (Mimic(worker=np.int64(2)), Mimic(worker=2)),  # type: ignore[arg-type]
    ):
        sent = own(honest, np.int64(1), CWTM(np.int64(1)))  # type: ignore[arg-type]
        assert torch.equal(sent, known(honest, 1, CWTM(1)))


@each("h, f", [(1, 1), (2, 2), (2, 5)])
def test_classical_factor_needs_an_honest_majority(h: int, f: int) -> None:
    with pytest.raises(ValueError, match=rf"ALIE: f must satisfy 2f < n, got f={f}, n={h + f}"):
        ALIE(search="z_max")(torch.randn(h, 3), f)


def test_every_vector_is_non_finite() -> None:
    with pytest.raises(ValueError, match="FOE: every vector is non-finite"):
        FOE()(torch.full((3, 2), torch.nan), f=1)


def test_a_subclass_that_says_nothing() -> None:
    class Silent(Attack):
        pass

    class Aimless(SearchedAttack):
        pass

    for attack, words in ((Silent(), "what it sends"), (Aimless(), "along which line")):
        with pytest.raises(TypeError, match=words):
            attack(torch.ones(3, 2), f=1)
