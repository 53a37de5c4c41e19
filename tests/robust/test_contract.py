"""What every rule promises, whatever it computes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests._each import each
from tests.robust import _properties as properties
from tests.robust._cases import (
    CASES,
    CLIPS,
    COORDINATES,
    IDEMPOTENT,
    MIXES,
    ROTATION,
    SYMMETRIC,
    TRANSLATION,
    Case,
    having,
    server,
)
from tests.robust._inputs import FAMILIES, matrix
from tests.robust._reference import Between

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@st.composite
def sizes(draw: st.DrawFn, most: int = 12) -> tuple[int, int]:
    n = draw(st.integers(1, most))
    return n, draw(st.integers(0, (n - 1) // 2))


@st.composite
def ordinary(draw: st.DrawFn) -> tuple[torch.Tensor, int]:
    """Float64 vectors in general position: no ties."""
    n, f = draw(sizes())
    d, seed = draw(st.integers(1, 9)), draw(st.integers(0, 10_000))
    family = draw(st.sampled_from(["gaussian", "unequal", "heavy"]))
    return torch.from_numpy(matrix(family, n, f, d, np.float64, seed)), f


def unique_answer(case: Case, x: torch.Tensor, f: int) -> bool:
    answers = case.answers(x.numpy(), f)
    if isinstance(answers[0], Between):
        return bool(np.array_equal(answers[0].low, answers[0].high))
    return len(answers) == 1


@pytest.mark.parametrize("case", having(SYMMETRIC), ids=lambda case: case.name)
@given(given=ordinary())
def test_order_of_the_vectors_does_not_matter(case: Case, given: tuple) -> None:
    x, f = given
    if unique_answer(case, x, f):
        properties.assert_permutation_invariant(case.rule(f), x)


@every_case
@given(given=ordinary(), power=st.integers(-40, 40))
def test_scale(case: Case, given: tuple, power: int) -> None:
    x, f = given
    factor = 2.0**power
    properties.assert_scale_equivariant(case.rule(f), case.rule(f, factor), x, factor)


@pytest.mark.parametrize("case", having(TRANSLATION), ids=lambda case: case.name)
@given(given=ordinary())
def test_translation(case: Case, given: tuple) -> None:
    x, f = given
    if unique_answer(case, x, f):
        properties.assert_translation_equivariant(case.rule(f), x)


@pytest.mark.parametrize("case", having(ROTATION), ids=lambda case: case.name)
@given(given=ordinary())
def test_rotation(case: Case, given: tuple) -> None:
    x, f = given
    if unique_answer(case, x, f):
        properties.assert_rotation_equivariant(case.rule(f), x)


@pytest.mark.parametrize("case", having(COORDINATES), ids=lambda case: case.name)
@given(given=ordinary())
def test_coordinates_are_independent(case: Case, given: tuple) -> None:
    x, f = given
    properties.assert_coordinatewise(case.rule(f), x)


@every_case
@given(given=ordinary())
def test_output_stays_in_the_box_of_the_inputs(case: Case, given: tuple) -> None:
    x, f = given
    properties.assert_inside_box(case.rule(f), x)


@pytest.mark.parametrize("case", having(IDEMPOTENT), ids=lambda case: case.name)
@each("n, f", [(1, 0), (2, 0), (3, 1), (8, 3), (15, 7)])
def test_copies_of_one_vector_give_that_vector(case: Case, n: int, f: int) -> None:
    vector = torch.tensor([1.0, -2.0, 0.0, 1e-3])
    output = case.rule(f)(vector.repeat(n, 1))
    torch.testing.assert_close(output, vector, rtol=1e-6, atol=0)


@each("clip", CLIPS)
@each("mix", MIXES)
@every_case
@each("family", FAMILIES)
def test_input_is_never_changed(
    case: Case, clip: str, mix: str, either_path: str, family: str
) -> None:
    x = torch.from_numpy(matrix(family, n=7, f=2, d=33))
    properties.assert_input_untouched(server(case, 2, clip, mix), x)
    properties.assert_input_untouched(server(case, 2, clip, mix).explain, x)


@every_case
def test_repeats_itself(case: Case, either_path: str) -> None:
    x = torch.from_numpy(matrix("little", n=9, f=2, d=1000))
    rule = case.rule(2)
    assert torch.equal(rule(x), rule(x.clone()))


@each("dtype", [np.float32, np.float64])
@every_case
def test_kind_and_dtype_come_back(case: Case, dtype: type, either_path: str) -> None:
    x = matrix("gaussian", n=7, f=2, d=5, dtype=dtype)
    properties.assert_keeps_kind(case.rule(2), x, (5,))
    properties.assert_keeps_kind(server(case, 2, "arc", "nnm"), x, (5,))


@every_case
def test_batch_dimensions(case: Case, either_path: str) -> None:
    batch = np.stack([matrix(family, n=7, f=2, d=6) for family in FAMILIES]).reshape(2, 4, 7, 6)
    for aggregate in (case.rule(2), server(case, 2, "arc", "nnm", bound_output=True)):
        together = aggregate(torch.from_numpy(batch))
        assert together.shape == (2, 4, 6)
        for i, j in np.ndindex(2, 4):
            alone = aggregate(torch.from_numpy(batch[i, j]))
            torch.testing.assert_close(together[i, j], alone, rtol=1e-5, atol=1e-6)


@every_case
def test_memory_layout_does_not_matter(case: Case, either_path: str) -> None:
    x = torch.from_numpy(matrix("gaussian", n=7, f=2, d=40))
    wide = torch.zeros(7, 80)
    wide[:, ::2] = x
    aggregate = server(case, 2, "arc", "nnm")
    for other in (x.T.contiguous().T, wide[:, ::2], x.flip(0).contiguous().flip(0)):
        torch.testing.assert_close(aggregate(other), aggregate(x), rtol=1e-5, atol=1e-6)


@every_case
def test_gradients_are_not_followed(case: Case) -> None:
    """What workers send is data: a tensor that requires a gradient is taken at its value."""
    x = torch.from_numpy(matrix("gaussian", n=7, f=2, d=5))
    output = case.rule(2)(x.clone().requires_grad_())
    assert not output.requires_grad
    assert torch.equal(output, case.rule(2)(x))


@every_case
def test_half_precision_comes_back_as_itself(case: Case) -> None:
    x = torch.from_numpy(matrix("gaussian", n=7, f=2, d=5)).half()
    output = case.rule(2)(x)
    assert output.dtype == torch.float16
    torch.testing.assert_close(output.float(), case.rule(2)(x.float()), rtol=2e-3, atol=1e-3)


@every_case
def test_repr_names_the_rule_and_its_settings(case: Case) -> None:
    text = repr(case.rule(2))
    assert type(case.rule(2)).__name__ in text
    assert "f=2" in text or not hasattr(case.rule(2), "f")
