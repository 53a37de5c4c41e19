"""What users' own rules, clips and mixes may return, and the line that refuses anything else."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lit_byz.attacks import FOE, Span
from lit_byz.registry import Registry
from lit_byz.robust import (
    CLIPS,
    CWTM,
    MIXES,
    RULES,
    Average,
    Bucketing,
    Clip,
    CoordinateRule,
    GeometricRule,
    Geometry,
    Mix,
    Reduction,
    RobustAggregator,
    Rule,
    StaticClip,
)
from tests._each import each
from tests.robust._inputs import matrix

X = torch.arange(6.0).reshape(3, 2)
HONEST = torch.from_numpy(matrix("gaussian", 6, 0, 5))
Made = Callable[[Any], Any]


class Reduces(CoordinateRule):
    def __init__(self, made: Made) -> None:
        self.made = made

    def reduction(self, n: int) -> Reduction:
        return self.made(n)  # type: ignore[no-any-return]


class Weighs(GeometricRule):
    def __init__(self, made: Made) -> None:
        self.made = made

    def weights(self, geometry: Geometry) -> torch.Tensor:
        return self.made(geometry)  # type: ignore[no-any-return]


class Clips(Clip):
    def __init__(self, made: Made) -> None:
        self.made = made

    def threshold(self, norms: torch.Tensor) -> torch.Tensor:
        return self.made(norms)  # type: ignore[no-any-return]


class Mixes(Mix):
    def __init__(self, made: Made) -> None:
        self.made = made

    def matrix(self, geometry: Geometry, step: int = 0) -> torch.Tensor:
        return self.made(geometry)  # type: ignore[no-any-return]


def server(part: object) -> RobustAggregator:
    if isinstance(part, Rule):
        return RobustAggregator(part)
    name = "clip" if isinstance(part, Clip) else "mix"
    return RobustAggregator(CWTM(1), **{name: part})  # type: ignore[arg-type]


def refusal(call: Callable[[], object], error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    return message


def assert_refused(part: object, error: type[Exception], method: str, said: str) -> None:
    """Alone, in a server, and where an attack tries hundreds of factors together."""
    calls = (
        lambda: part(X),  # type: ignore[operator]
        lambda: server(part)(X),
        lambda: FOE()(HONEST, 1, server(part)),
    )
    for call in calls:
        message = refusal(call, error)
        assert re.match(rf"{type(part).__name__}\.{method}: must return .*{said}", message), message


def test_reductions_beyond_the_values_there_are(either_path: str) -> None:
    """Compiled passes would read whatever lies there."""
    for begin, end, nearest in (
        *((0, 99, 0), (0, 100_000, 0), (3, 2, 0), (1, 1, 0), (-1, 2, 0), (7, 8, 0)),
        *((0, 2, 99), (0, 2, -1)),
    ):
        found = Reduction(begin, end, nearest)
        said = rf"0 <= begin < end <= n .* for n=\d, got {re.escape(str(found))}$"
        assert_refused(Reduces(lambda n, found=found: found), ValueError, "reduction", said)


@given(
    n=st.integers(1, 7), begin=st.integers(-2, 9), end=st.integers(-2, 9), near=st.integers(-2, 9)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_reduction_is_refused_or_stays_among_the_values(
    either_path: str, n: int, begin: int, end: int, near: int
) -> None:
    x = torch.from_numpy(matrix("gaussian", n, 0, 9))
    rule = Reduces(lambda n: Reduction(begin, end, near))
    if not (0 <= begin < end <= n and 0 <= near <= n):
        refusal(lambda: rule(x), ValueError)
        return
    output = rule(x)
    assert (x.amin(0) - 1e-6 <= output).all()
    assert (output <= x.amax(0) + 1e-6).all()


def test_a_reduction_that_buckets_leave_too_few_values_for() -> None:
    trimmed = RobustAggregator(Reduces(lambda n: Reduction(2, n - 2)), mix=Bucketing(2))
    message = refusal(lambda: trimmed(torch.ones(8, 3)), ValueError)
    assert message.endswith("for n=4, got Reduction(begin=2, end=2, nearest=0)")


@each(
    "made, said",
    [
        (lambda n: (0, n), "a tuple"),
        (lambda n: None, r"None: is a return missing\?"),
        (lambda n: Reduction(0.5, n), r"Reduction\(begin=0.5, end=\d, nearest=0\)"),  # type: ignore[arg-type]
    ],
)
def test_no_reduction_at_all(made: Made, said: str) -> None:
    assert_refused(Reduces(made), TypeError, "reduction", f"got {said}$")


def test_a_reduction_in_numbers_of_numpy() -> None:
    rule = Reduces(lambda n: Reduction(np.int64(1), np.int64(n) - 1))  # type: ignore[arg-type]
    assert torch.equal(rule(X), CWTM(1)(X))
    assert torch.equal(FOE()(HONEST, 1, rule), FOE()(HONEST, 1, CWTM(1)))


@each(
    "made, error, said",
    [
        (lambda g: torch.ones(*g.batch, g.n + 3), ValueError, r"got shape \([\d, ]*\)"),
        (lambda g: torch.ones(*g.batch, g.n - 1), ValueError, r"got shape \([\d, ]*\)"),
        (lambda g: torch.ones(()), ValueError, r"\(\*geometry.batch, geometry.n\), got shape \(\)"),
        (lambda g: [1.0] * g.n, TypeError, "got a list"),
        (lambda g: None, TypeError, "got None: is a return missing"),
        (lambda g: torch.ones(*g.batch, g.n).int(), TypeError, "floating-point.*got torch.int32"),
        (lambda g: np.ones((*g.batch, g.n), complex), TypeError, "NumPy array of complex128"),
    ],
)
def test_other_than_one_weight_for_every_vector(made: Made, error: type, said: str) -> None:
    assert_refused(Weighs(made), error, "weights", said)


def test_weights_that_have_lost_the_dimensions_in_front() -> None:
    """One set of weights for all that an attack tries would not be the rule's answer to each."""
    rule = Weighs(lambda g: torch.full((g.n,), 1 / g.n))
    assert torch.allclose(rule(X), X.mean(0))
    message = refusal(lambda: FOE()(HONEST, 1, rule), ValueError)
    assert "must return a tensor of shape (320, 7)" in message


@each("dtype", [torch.float16, torch.float32, torch.float64])
def test_small_matrices_of_any_precision(dtype: torch.dtype, either_path: str) -> None:
    """An eighth is the same number in all of them."""
    eight = torch.from_numpy(matrix("gaussian", 8, 0, 5))
    mean = Weighs(lambda g: torch.full((*g.batch, g.n), 1 / 8, dtype=dtype))
    array = Weighs(lambda g: np.full((*g.batch, g.n), 1 / 8, dtype=np.float32))
    still = Mixes(lambda g: torch.eye(g.n, dtype=dtype))
    spread = Mixes(lambda g: torch.eye(g.n, dtype=dtype).expand(*g.batch, -1, -1))
    assert torch.equal(mean(eight), Average()(eight))
    assert torch.equal(array(eight), Average()(eight))
    for mix in (still, spread):
        assert torch.equal(mix(eight), eight)
        assert torch.allclose(FOE()(HONEST, 1, server(mix)), FOE()(HONEST, 1, CWTM(1)))
    assert torch.equal(FOE()(eight[:7], 1, mean), FOE()(eight[:7], 1, Average()))


@each(
    "made, error, said",
    [
        (lambda g: torch.eye(g.n + 1), ValueError, r"got shape \(\d, \d\)"),
        (lambda g: torch.eye(g.n)[:2], ValueError, r"rows_after\(n\) by n.*got shape \(2, \d\)"),
        (lambda g: torch.ones(g.n), ValueError, r"got shape \(\d,\)"),
        (lambda g: torch.eye(g.n).expand(5, -1, -1), ValueError, r"got shape \(5, \d, \d\)"),
        (lambda g: [[1.0] * g.n] * g.n, TypeError, "got a list"),
        (lambda g: torch.eye(g.n).long(), TypeError, "floating-point numbers, got torch.int64"),
    ],
)
def test_other_than_a_matrix(made: Made, error: type, said: str) -> None:
    assert_refused(Mixes(made), error, "matrix", said)


@each("made", [lambda norms: 1.0, lambda norms: 1, lambda norms: np.float32(1)])
def test_a_threshold_that_is_a_number(made: Made) -> None:
    clip = Clips(made)
    assert torch.equal(clip(X), StaticClip(1.0)(X))
    for attack in (FOE(), Span(budget=60)):
        own, known = (attack(HONEST, 1, server(c)) for c in (clip, StaticClip(1.0)))
        assert torch.equal(own, known)


@each(
    "made",
    [
        lambda norms: norms.median(-1).values,
        lambda norms: norms.median(-1).values.numpy(),
        lambda norms: norms.detach().clone().requires_grad_().median(-1).values,
    ],
)
def test_a_threshold_for_each_input(made: Made) -> None:
    """A batch is clipped as its items are."""
    clip = Clips(made)
    batch = torch.stack([X, 3 * X, X.flip(1)])
    assert torch.equal(clip(batch), torch.stack([clip(x) for x in batch]))
    assert not clip(X).requires_grad


@each("attack", [FOE(), Span(budget=60)])
@each(
    "made",
    [lambda norms: norms.median(), lambda norms: norms.amax(-1, True), lambda norms: norms[0]],
)
def test_a_threshold_over_all_that_an_attack_tries(made: Made, attack: FOE | Span) -> None:
    """It would depend on factors that are not sent, and the search would find less damage."""
    message = refusal(lambda: attack(HONEST, 1, server(Clips(made))), ValueError)
    assert "Clips.threshold: must return a number, or a tensor of shape (320,)" in message
    assert "reduce over the last dimension" in message


def test_a_threshold_that_is_none() -> None:
    clip = Clips(lambda norms: None)
    for call in (lambda: clip(X), lambda: FOE()(HONEST, 1, server(clip))):
        assert "got None: is a return missing?" in refusal(call, TypeError)


def test_a_method_without_its_arguments() -> None:
    class NoStep(Mix):
        def matrix(self, geometry: Geometry) -> torch.Tensor:  # type: ignore[override]
            return torch.eye(geometry.n)

    class NoGeometry(GeometricRule):
        def weights(self) -> torch.Tensor:  # type: ignore[override]
            return torch.ones(3)

    for part, said in (
        (NoStep(), "NoStep.matrix: must take the arguments (geometry, step), got "),
        (NoGeometry(), "NoGeometry.weights: must take the arguments (geometry), got "),
    ):
        assert refusal(lambda part=part: part(X), TypeError).startswith(said)  # type: ignore[operator]


def test_errors_of_its_own_are_a_class_s_own() -> None:
    rule = Weighs(lambda geometry: geometry.n + "one")
    assert "unsupported operand" in refusal(lambda: rule(X), TypeError)


@each("registry", [CLIPS, MIXES, RULES])
def test_the_examples_that_users_are_shown_work(registry: Registry) -> None:
    written: dict[str, Any] = {}
    exec(registry.example, written)
    own = written[f"My{registry.kind.title()}"]()
    assert own(X) is not None
    assert FOE()(HONEST, 1, server(own)).shape == (5,)


@each(
    "part",
    [Weighs(lambda geometry: 1.0), Reduces(lambda n: (0, n)), Clips(lambda x: None), Mixes(len)],
)
def test_what_is_refused_has_the_example_of_its_base_class_as_a_note(part: Any) -> None:
    """Errors of the class's own code have none."""
    with pytest.raises(TypeError) as caught:
        part(X)
    notes = getattr(caught.value, "__notes__", [])
    assert notes == ([] if part.made is len else [type(part).__base__.example])
