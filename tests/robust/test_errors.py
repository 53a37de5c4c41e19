"""Bad arguments: one line that names the rule, the argument, its value and what is allowed."""

import re
from collections.abc import Callable

import numpy as np
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
    NoClip,
    RobustAggregator,
    StaticClip,
)
from tests._each import each

WITH_F = [ARC, NNM, CWTM, Krum, MultiKrum, MeaMed, MDA, CAF, MoNNA, SMEA]
EVERYTHING = [
    *(build(1) for build in WITH_F),
    *(NoClip(), StaticClip(1.0), Bucketing(2), Average(), CWMed(), GeometricMedian()),
    *(CenteredClipping(1.0, 1), RobustAggregator(CWTM(1), clip=ARC(1), mix=NNM(1))),
]
with_f = pytest.mark.parametrize("build", WITH_F, ids=lambda build: build.__name__)
everything = pytest.mark.parametrize("part", EVERYTHING, ids=lambda part: type(part).__name__)


def message_of(error: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    return message


def assert_names(message: str, *words: object) -> None:
    for word in words:
        pattern = rf"(?<![\w.]){re.escape(str(word))}(?![\w])"
        assert re.search(pattern, message), f"{word!r} is not in {message!r}"


@with_f
@each("f", [-1, -7])
def test_negative_f(build: type, f: int) -> None:
    assert_names(message_of(ValueError, lambda: build(f)), build.__name__, "f", f)


@with_f
@each("f", [1.0, "1", None, True, np.float64(1)])
def test_f_that_is_no_integer(build: type, f: object) -> None:
    message = message_of(TypeError, lambda: build(f))
    assert_names(message, build.__name__, "f")
    assert repr(f) in message


@with_f
@each("kind", [np.int64, np.int8, np.uint16])
def test_integers_of_numpy(build: type, kind: type) -> None:
    part = build(kind(1))
    assert part == build(1)
    assert type(part.f) is int
    assert_names(message_of(ValueError, lambda: build(kind(100))(torch.ones(150, 2))), "f=100")


@with_f
@each("n, f", [(1, 1), (2, 1), (4, 2), (5, 3), (3, 9)])
def test_too_many_byzantine(build: type, n: int, f: int) -> None:
    message = message_of(ValueError, lambda: build(f)(torch.ones(n, 3)))
    assert_names(message, build.__name__, f"f={f}", f"n={n}", "2f < n")


@with_f
def test_too_many_byzantine_in_a_composition(build: type) -> None:
    """Found before anything is computed, and the culprit is named."""
    parts = {"rule": Average()}
    parts["clip" if build is ARC else "mix" if build is NNM else "rule"] = build(2)
    message = message_of(ValueError, lambda: RobustAggregator(**parts)(torch.ones(4, 3)))
    assert_names(message, build.__name__, "f=2", "n=4")


def test_buckets_leave_too_few_for_the_rule() -> None:
    server = RobustAggregator(CWTM(2), mix=Bucketing(2))
    assert_names(message_of(ValueError, lambda: server(torch.ones(7, 3))), "CWTM", "f=2", "n=4")


ARGUMENTS = [
    (lambda: StaticClip(-1.0), ValueError, "StaticClip", "C", -1.0),
    (lambda: StaticClip(float("nan")), ValueError, "StaticClip", "C", "nan"),
    (lambda: StaticClip("2"), TypeError, "StaticClip", "C", "2"),
    (lambda: ARC(1, zeta=2.5), ValueError, "ARC", "zeta", 2.5),
    (lambda: ARC(1, zeta=-0.5), ValueError, "ARC", "zeta", -0.5),
    (lambda: Bucketing(0), ValueError, "Bucketing", "s", 0),
    (lambda: Bucketing(1.5), TypeError, "Bucketing", "s", 1.5),
    (lambda: Bucketing(2, seed=-3), ValueError, "Bucketing", "seed", -3),
    (lambda: GeometricMedian(nu=0.0), ValueError, "GeometricMedian", "nu", 0.0),
    (lambda: GeometricMedian(nu=-1.0), ValueError, "GeometricMedian", "nu", -1.0),
    (lambda: GeometricMedian(iterations=0), ValueError, "GeometricMedian", "iterations", 0),
    (lambda: GeometricMedian(iterations=2.0), TypeError, "GeometricMedian", "iterations", 2.0),
    (lambda: GeometricMedian(tolerance=-1e-3), ValueError, "GeometricMedian", "tolerance", -0.001),
    (lambda: CenteredClipping(-2.0, 1), ValueError, "CenteredClipping", "tau", -2.0),
    (lambda: CenteredClipping(1.0, 0), ValueError, "CenteredClipping", "iterations", 0),
    (lambda: MoNNA(1, pivot=-1), ValueError, "MoNNA", "pivot", -1),
    (lambda: MoNNA(1, pivot=1.0), TypeError, "MoNNA", "pivot", 1.0),
    (lambda: MoNNA(1, pivot=None), TypeError, "MoNNA", "pivot", None),
]


@each("call, error, owner, name, value", ARGUMENTS)
def test_bad_settings(call: Callable, error: type, owner: str, name: str, value: object) -> None:
    assert_names(message_of(error, call), owner, name, value)


@each("build", [MDA, SMEA])
def test_too_many_subsets(build: type) -> None:
    """Before any of them is looked at, alone as in a composition."""
    server = RobustAggregator(build(9), clip=ARC(9), mix=NNM(9))
    for call in (lambda: build(9)(torch.ones(39, 2)), lambda: server(torch.ones(39, 2))):
        message = message_of(ValueError, call)
        assert_names(message, build.__name__, "f=9", "n=39", "211,915,132")


@each("n, pivot", [(3, 3), (7, 7), (7, 100)])
def test_a_pivot_that_does_not_exist(n: int, pivot: int) -> None:
    message = message_of(ValueError, lambda: MoNNA(1, pivot)(torch.ones(n, 2)))
    assert_names(message, "MoNNA", f"pivot={pivot}", f"n={n}", "0 to n - 1")


def test_buckets_leave_no_row_for_the_pivot() -> None:
    server = RobustAggregator(MoNNA(1, pivot=5), mix=Bucketing(2))
    message = message_of(ValueError, lambda: server(torch.ones(9, 3)))
    assert_names(message, "MoNNA", "pivot=5", "n=5")


@everything
@each("shape", [(), (5,)])
def test_not_a_matrix(part: Callable, shape: tuple[int, ...]) -> None:
    message = message_of(ValueError, lambda: part(torch.ones(shape)))
    assert_names(message, type(part).__name__, "x")
    assert str(shape) in message


@everything
@each("shape", [(0, 3), (3, 0), (0, 0), (0, 5, 3)])
def test_empty(part: Callable, shape: tuple[int, ...]) -> None:
    message = message_of(ValueError, lambda: part(torch.ones(shape)))
    assert_names(message, type(part).__name__, "x")
    assert str(shape) in message


@everything
def test_empty_list(part: Callable) -> None:
    assert_names(message_of(ValueError, lambda: part([])), type(part).__name__, "x")


@everything
@each("dtype", [torch.int64, torch.int32, torch.bool, torch.complex64])
def test_not_floating_point(part: Callable, dtype: torch.dtype) -> None:
    message = message_of(TypeError, lambda: part(torch.ones(5, 3, dtype=dtype)))
    assert_names(message, type(part).__name__, "x")
    assert str(dtype) in message


@everything
@each("dtype", [np.int64, np.complex128, np.bool_, object])
def test_not_floating_point_array(part: Callable, dtype: type) -> None:
    message = message_of(TypeError, lambda: part(np.ones((5, 3), dtype=dtype)))
    assert_names(message, type(part).__name__, "x")


@everything
@each("x", [None, "vectors", b"ab", 3.0, {"a": 1}, [1.0, 2.0], [["1"], ["2"]], [[[1.0]], [[2.0]]]])
def test_not_vectors(part: Callable, x: object) -> None:
    assert_names(message_of(TypeError, lambda: part(x)), type(part).__name__, "x")


@everything
def test_vectors_of_different_lengths(part: Callable) -> None:
    message = message_of(ValueError, lambda: part([torch.ones(3), torch.ones(4), torch.ones(3)]))
    assert_names(message, type(part).__name__, "x")


@everything
def test_lists_of_numbers_of_different_lengths(part: Callable) -> None:
    message = message_of(ValueError, lambda: part([[1.0, 2.0], [3.0, 4.0], [5.0]]))
    assert_names(message, type(part).__name__, "x", "(2,)")


@everything
@each("kind", [torch.from_numpy, np.asarray])
@each("shape", [(10, 7), (), (1, 2, 3)])
def test_a_list_of_matrices_is_no_batch(part: Callable, kind: Callable, shape: tuple) -> None:
    x = [kind(np.ones(shape)) for _ in range(5)]
    message = message_of(ValueError, lambda: part(x))
    assert_names(message, type(part).__name__, "x", shape, "flatten")


@everything
def test_numbers_that_torch_does_not_have(part: Callable) -> None:
    long = np.ones((5, 3), np.longdouble)
    if long.itemsize == 8:  # where a long double is none
        assert np.isfinite(part(long)).all()
        return
    message = message_of(TypeError, lambda: part(long))
    assert_names(message, type(part).__name__, "x", "64 bits", long.dtype)


@everything
def test_mixed_kinds_of_vectors(part: Callable) -> None:
    message = message_of(TypeError, lambda: part([torch.ones(3), np.ones(3), torch.ones(3)]))
    assert_names(message, type(part).__name__, "x")


@each("argument", ["rule", "clip", "mix"])
def test_parts_that_are_not_what_they_should_be(argument: str) -> None:
    parts: dict[str, object] = {"rule": Average(), argument: "cwtm"}
    message = message_of(TypeError, lambda: RobustAggregator(**parts))
    assert_names(message, "RobustAggregator", argument)
    assert "'cwtm'" in message
