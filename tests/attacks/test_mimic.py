"""Mimic follows the direction of greatest spread, and then one worker."""

import byzfl
import numpy as np
import pytest
import torch

from lit_byz.attacks import Mimic, State
from tests._each import each
from tests.attacks._reference import mimic

H, D, PLANTED = 9, 40, 6
STEPS = 130


def rounds(seed: int, steps: int = STEPS, shift: float = 6.0) -> list[torch.Tensor]:
    """Workers with data of their own; one of them far from the rest, in a direction of its own."""
    draw = torch.Generator().manual_seed(seed)
    own = 0.3 * torch.randn(H, D, generator=draw)
    own[PLANTED] += shift * torch.nn.functional.normalize(torch.randn(D, generator=draw), dim=0)
    return [own + 0.2 * torch.randn(H, D, generator=draw) for _ in range(steps)]


def targets(attack: Mimic, given: list[torch.Tensor], state: State | None = None) -> list[int]:
    """Whose vector is sent at each step, unchanged."""
    state = {} if state is None else state
    found = []
    for t, x in enumerate(given):
        sent = attack(x, f=2, state=state, step=t)
        matches = (x == sent).all(dim=1).nonzero()[:, 0]
        assert len(matches) == 1
        found.append(int(matches[0]))
    return found


@each("warmup", [1, 3, 100, None])
@each("seed", range(4))
def test_step_by_step(warmup: int | None, seed: int) -> None:
    """No planted worker: the target changes, as it does in the plain algorithm."""
    draw = torch.Generator().manual_seed(seed)
    given = [torch.randn(H, D, generator=draw, dtype=torch.float64) for _ in range(STEPS)]
    start = torch.randn(D, generator=torch.Generator().manual_seed(seed))
    expected = mimic([x.numpy() for x in given], start.numpy(), warmup)
    assert targets(Mimic(warmup=warmup, seed=seed), given) == expected


def test_targets_vary_while_warming_up() -> None:
    draw = torch.Generator().manual_seed(0)
    given = [torch.randn(H, D, generator=draw) for _ in range(20)]
    assert len(set(targets(Mimic(warmup=None), given))) > 2
    assert len(set(targets(Mimic(warmup=5), given)[4:])) == 1
    assert len(set(targets(Mimic(warmup=1), given))) == 1


@each("warmup", [1, 100, None])
def test_finds_the_planted_worker_and_keeps_it(warmup: int | None) -> None:
    """From a start that points to its side; from the other, the spread is followed backwards."""
    found = 0
    for seed in range(8):
        given = rounds(seed)
        own = torch.stack(given).mean(0)
        away = own[PLANTED] - own.mean(0)
        start = torch.randn(D, generator=torch.Generator().manual_seed(seed))
        if float(start @ away) <= 0:
            continue
        found += 1
        assert set(targets(Mimic(warmup=warmup, seed=seed), given)) == {PLANTED}
    assert found >= 3


def test_keeps_its_target_when_the_spread_turns() -> None:
    """After the warm-up nothing that the others do matters."""
    seed = next(
        s for s in range(20) if targets(Mimic(warmup=1, seed=s), rounds(s)[:1]) == [PLANTED]
    )
    given = rounds(seed)[:10]
    turned = [x.clone() for x in given]
    for x in turned:
        x[0] += 100
    attack, state = Mimic(warmup=10, seed=seed), {}
    assert set(targets(attack, given, state)) == {PLANTED}
    assert set(targets(attack, turned, state)) == {PLANTED}
    assert int(state["seen"]) == 10


@each("worker", range(H))
def test_a_given_worker_is_repeated_from_the_first_step_to_the_last(worker: int) -> None:
    """Whatever the heuristic's settings are, and with nothing to remember."""
    for warmup, seed in ((1, 0), (100, 3), (None, 4)):
        state: State = {}
        given = rounds(seed, steps=5)
        attack = Mimic(warmup=warmup, seed=seed, worker=worker)
        assert targets(attack, given, state) == [worker] * 5
        assert state == {}


@each("worker", range(H))
def test_a_given_worker_is_the_one_that_byzfl_mimics(worker: int) -> None:
    x = rounds(0, steps=1)[0]
    sent = Mimic(worker=worker)(x, f=2)
    assert torch.equal(sent, byzfl.Mimic(epsilon=worker)(x.clone()))


def test_direction_is_a_unit_vector_and_the_centre_a_running_mean() -> None:
    given, state = rounds(2, steps=7), {}
    targets(Mimic(seed=2), given, state)
    assert float(state["direction"].norm()) == pytest.approx(1, rel=1e-6)
    np.testing.assert_allclose(
        state["centre"], torch.stack(given).mean((0, 1)), rtol=1e-4, atol=1e-6
    )
