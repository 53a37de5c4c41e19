"""What every attack promises, whatever it sends."""

import copy
import io
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
import torch

from lit_byz.attacks import ATTACKS, Scene, State
from lit_byz.robust import CWTM, Basis, RobustAggregator
from tests._each import each
from tests.attacks._cases import CASES, SERVER, Case, D, F, H, flipped, honest

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
DTYPES = [torch.float32, torch.float64]


def send(case: Case, x: Any, f: int = F, server: Any = SERVER, **more: Any) -> Any:
    return case.build()(x, f, server, flipped=more.pop("flipped", flipped()), **more)


def test_every_attack_is_here() -> None:
    assert {case.name.split("-")[0] for case in CASES} == set(ATTACKS)
    for case in CASES:
        assert isinstance(case.build(), ATTACKS[case.name.split("-")[0]])


@every_case
@each("dtype", DTYPES)
def test_finite_vectors_of_the_same_dtype(case: Case, dtype: torch.dtype, either_path: str) -> None:
    sent = send(case, honest(dtype=dtype))
    assert sent.shape == case.shape(F, D)
    assert sent.dtype == dtype
    assert bool(torch.isfinite(sent).all()) == case.finite


@every_case
@each("dtype", [np.float32, np.float64])
def test_kind_comes_back(case: Case, dtype: type) -> None:
    x = honest().numpy().astype(dtype)
    expected = send(case, torch.from_numpy(x))
    array = send(case, x)
    assert isinstance(array, np.ndarray)
    assert array.dtype == dtype
    assert np.array_equal(array, expected.numpy(), equal_nan=True)
    from_tensors = send(case, list(torch.from_numpy(x)))
    assert isinstance(from_tensors, torch.Tensor)
    assert np.array_equal(from_tensors.numpy(), array, equal_nan=True)
    from_arrays = send(case, list(x))
    assert isinstance(from_arrays, np.ndarray)
    assert np.array_equal(from_arrays, array, equal_nan=True)


@every_case
def test_half_precision_comes_back_as_itself(case: Case) -> None:
    assert send(case, honest().half()).dtype == torch.float16


@every_case
def test_honest_vectors_are_not_touched(case: Case, either_path: str) -> None:
    x, y = honest(), flipped()
    before_x, before_y = x.clone(), y.clone()
    send(case, x, flipped=y)
    assert torch.equal(x, before_x)
    assert torch.equal(y, before_y)


@every_case
@each("h, f, d", [(1, 1, 1), (2, 1, 1), (3, 1, 2), (3, 2, 5), (11, 4, 70)])
def test_any_size(case: Case, h: int, f: int, d: int) -> None:
    if case.name == "alie-z_max" and 2 * f >= h + f:
        return  # has no answer there: test_errors.py
    sent = send(case, honest(h=h, d=d), f, None, flipped=flipped(h=h, d=d))
    assert sent.shape == case.shape(f, d)
    assert bool(torch.isfinite(sent).all()) == case.finite


@every_case
def test_workers_that_agree(case: Case) -> None:
    """No spread, no direction, zero vectors: nothing divides by them."""
    for value in (0.0, 1.0):
        sent = send(case, torch.full((H, D), value))
        assert bool(torch.isfinite(sent).all()) == case.finite


@every_case
def test_a_worker_that_is_not_finite_counts_as_zeros(case: Case) -> None:
    broken, zeroed = honest(), honest()
    broken[2, 5], zeroed[2] = torch.nan, 0
    torch.testing.assert_close(send(case, broken), send(case, zeroed), equal_nan=True)


def steps(case: Case, state: State, first: int, last: int) -> list[torch.Tensor]:
    attack = case.build()
    return [
        attack(honest(t), F, SERVER, state=state, step=t, flipped=flipped(t))
        for t in range(first, last)
    ]


@every_case
def test_interrupted_and_restored_is_uninterrupted(case: Case) -> None:
    whole = steps(case, {}, 0, 8)
    for stop in (1, 3, 6):
        state: State = {}
        before = steps(case, state, 0, stop)
        assert all(isinstance(value, torch.Tensor) for value in state.values())
        stored = io.BytesIO()
        torch.save(state, stored)
        stored.seek(0)
        after = steps(case, torch.load(stored, weights_only=True), stop, 8)
        for step, (ours, expected) in enumerate(zip(before + after, whole, strict=True)):
            same = torch.equal(ours.nan_to_num(nan=7), expected.nan_to_num(nan=7))
            assert same, f"stopped before step {stop}, differs at step {step}"


@every_case
def test_memory_is_in_the_state_alone(case: Case) -> None:
    """One object serves two runs: each has its own state."""
    attack = case.build()
    settings = copy.deepcopy(attack)
    first: State = {}
    for t in range(3):
        attack(honest(t), F, SERVER, state=first, step=t, flipped=flipped(t))
    again = attack(honest(), F, SERVER, flipped=flipped())
    assert torch.equal(again.nan_to_num(nan=7), send(case, honest()).nan_to_num(nan=7))
    assert attack == settings


@every_case
@each("dtype", DTYPES)
def test_a_buffer_changes_nothing(case: Case, dtype: torch.dtype, either_path: str) -> None:
    """The last row of the buffer is written to instead of a copy of all of them."""
    x, y = honest(dtype=dtype), flipped(dtype=dtype).mean(0)
    buffer = torch.cat([x, torch.full((1, D), torch.nan, dtype=dtype)])
    states: list[State] = [{}, {}]
    for t in range(2):
        copied = case.build().act(Scene(Basis(x), F, SERVER, t, y), states[0])
        scene = Scene(Basis(buffer[:H]), F, SERVER, t, y, buffer)
        written = case.build().act(scene, states[1])
        assert torch.equal(copied.vector().nan_to_num(nan=7), written.vector().nan_to_num(nan=7))
        assert copied.factor == written.factor
        assert copied.damage == written.damage
        assert torch.equal(buffer[:H], x)
        assert (written.basis.rows.data_ptr() == buffer.data_ptr()) != case.copies


@every_case
def test_a_move_says_what_the_call_sends(case: Case) -> None:
    move, _ = case.build().move(honest(), F, SERVER, flipped=flipped())
    assert case.copies or move.basis.size in (H, H + 1)
    assert move.coefficients.shape == case.shape(F, move.basis.size)
    assert move.coefficients.dtype == torch.float64
    assert torch.equal(move.vector().nan_to_num(nan=7), send(case, honest()).nan_to_num(nan=7))


@every_case
def test_settings_are_shown_and_compared(case: Case) -> None:
    attack = case.build()
    assert is_dataclass(attack)
    assert type(attack).__name__ in repr(attack)
    assert attack == type(attack)(**{f.name: getattr(attack, f.name) for f in fields(attack)})


@every_case
@each("f", [0, -1])
def test_there_must_be_an_attacker(case: Case, f: int) -> None:
    with pytest.raises(ValueError, match=rf"f must be an int >= 1, got {f}"):
        send(case, honest(), f)


@every_case
def test_number_of_attackers_is_an_integer(case: Case) -> None:
    with pytest.raises(TypeError, match=r"f must be an int >= 1, got 1\.0"):
        send(case, honest(), 1.0)  # type: ignore[arg-type]


@every_case
def test_too_few_vectors_for_the_server(case: Case) -> None:
    server = RobustAggregator(CWTM(4))
    with pytest.raises(ValueError, match=r"CWTM: f must satisfy 2f < n, got f=4, n=8"):
        send(case, honest(), 1, server)


@every_case
@each("shape", [(D,), (2, H, D), (0, D), (H, 0)])
def test_wrong_shapes(case: Case, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=type(case.build()).__name__) as caught:
        send(case, torch.ones(shape))
    assert str(shape) in str(caught.value)


@every_case
@each("dtype", [torch.int64, torch.bool, torch.complex64])
def test_not_floating_point(case: Case, dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=f"{type(case.build()).__name__}.*{dtype}"):
        send(case, torch.ones(H, D, dtype=dtype))
