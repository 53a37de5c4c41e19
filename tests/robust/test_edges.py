"""Degenerate inputs: one vector, one coordinate, zeros, copies, ties, extreme numbers."""

import numpy as np
import pytest
import torch

from lit_byz.robust import (
    ARC,
    NNM,
    CWMed,
    NoClip,
    RobustAggregator,
    StaticClip,
)
from tests._each import each
from tests.robust import _reference as reference
from tests.robust._cases import CASES, CLIPS, IDEMPOTENT, MIXES, Case, answers, having, server
from tests.robust._inputs import FAMILIES, SCALES, matrix
from tests.robust._properties import relative_error

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
# Without Byzantine vectors to leave out.
AVERAGES = ("average", "cwtm", "meamed", "multi_krum", "mda", "caf", "monna", "smea")
compositions = each("clip, mix", [(clip, mix) for clip in CLIPS for mix in MIXES])


@compositions
@every_case
def test_nobody_is_byzantine(case: Case, clip: str, mix: str) -> None:
    """f = 0: rules that tolerate f vectors are plain averages, ARC and NNM included."""
    x = matrix("gaussian", 6, 0, 9, np.float64)
    output = server(case, 0, clip, mix)(x)
    assert relative_error(output, answers(case, x, 0, clip, mix), x) < 1e-9
    if case.name in AVERAGES and clip != "static":
        np.testing.assert_allclose(output, x.mean(axis=0), rtol=1e-9)


@compositions
@every_case
def test_one_vector(case: Case, clip: str, mix: str, either_path: str) -> None:
    x = np.array([[0.3, -0.4, 1.2]])
    output = server(case, 0, clip, mix)(x)
    assert relative_error(output, answers(case, x, 0, clip, mix), x) < 1e-9
    np.testing.assert_allclose(output, x[0], rtol=1e-6)  # shorter than C and τ


@compositions
@every_case
def test_two_vectors(case: Case, clip: str, mix: str) -> None:
    x = np.array([[0.3, -0.4, 1.2], [1.0, 0.2, 0.5]])
    output = server(case, 0, clip, mix)(x)
    assert relative_error(output, answers(case, x, 0, clip, mix), x) < 1e-9


@each("family", FAMILIES)
@every_case
@each("n, f", [(3, 1), (6, 2), (11, 5)])
def test_one_coordinate(case: Case, family: str, either_path: str, n: int, f: int) -> None:
    x = matrix(family, n, f, 1, np.float64)
    output = case.rule(f)(torch.from_numpy(x))
    assert relative_error(output, case.answers(x, f), x) < 1e-7, (n, f)


@compositions
@every_case
@each("n, f", [(1, 0), (4, 1), (9, 4)])
def test_zeros(case: Case, clip: str, mix: str, either_path: str, n: int, f: int) -> None:
    output = server(case, f, clip, mix, bound_output=True)(torch.zeros(n, 5))
    assert torch.equal(output, torch.zeros(5))


@each("dtype", [np.float32, np.float64])
@each("scale", SCALES)
@compositions
@every_case
@each("family", ("gaussian", "little"))
def test_scales(case: Case, scale: float, dtype: type, clip: str, mix: str, family: str) -> None:
    """Norms from 1e-30 to 1e15: no step may overflow, underflow or divide by zero."""
    x = matrix(family, 7, 2, 8, np.float64)
    x = (scale * x / np.linalg.norm(x, axis=1).max()).astype(dtype)
    output = np.asarray(server(case, 2, clip, mix)(x), dtype=np.float64)
    assert np.isfinite(output).all()
    if scale:
        error = relative_error(output / scale, _scaled(case, x, scale, clip, mix), x / scale)
        assert error < (1e-5 if dtype is np.float32 else 1e-7), family


def _scaled(case: Case, x: np.ndarray, scale: float, clip: str, mix: str) -> list:
    """The answers for x in units of ``scale``, which references compute without trouble."""
    return [
        reference.Between(answer.low / scale, answer.high / scale)
        if isinstance(answer, reference.Between)
        else answer / scale
        for answer in answers(case, reference.exact(x), 2, clip, mix)
    ]


@each("far", [1e6, 1e15])
@each("mix", MIXES)
@every_case
def test_a_distant_vector_does_not_blur_the_others(case: Case, mix: str, far: float) -> None:
    """One vector of norm 1e15 beside vectors of norm 1 and 1e-30, in float64."""
    x = matrix("gaussian", 7, 2, 6, np.float64)
    x[2] *= far
    x[5] *= 1e-30
    output = server(case, 2, "none", mix)(x)
    error = relative_error(output, answers(case, x, 2, "none", mix), x)
    assert error < 1e-5


@every_case
@each("dtype", (np.float32, np.float64))
def test_extreme_but_finite_numbers_give_finite_outputs(
    case: Case, either_path: str, dtype: type
) -> None:
    """Honest vectors stay what they are beside the largest numbers there are."""
    x = matrix("gaussian", 7, 2, 6, dtype)
    x[0] = np.finfo(dtype).max
    x[1] = -np.finfo(dtype).max
    for clip, mix in (("none", "none"), ("arc", "none"), ("arc", "nnm")):
        assert np.isfinite(server(case, 2, clip, mix)(x)).all(), (clip, mix)


@pytest.mark.parametrize("case", having(IDEMPOTENT), ids=lambda case: case.name)
def test_a_majority_of_copies(case: Case) -> None:
    """n − f copies of one vector leave a robust rule no choice."""
    x = matrix("outliers", 9, 3, 6, np.float64)
    x[[0, 2, 3, 5, 6, 8]] = x[0]
    output = case.rule(3)(x)
    if "robust" in case.has:
        np.testing.assert_allclose(output, x[0], rtol=1e-7)
    assert relative_error(output, case.answers(x, 3), x) < 1e-7


@compositions
@every_case
def test_ties_everywhere(case: Case, clip: str, mix: str) -> None:
    """The corners of a cube: all norms or distances come in equal groups, nothing breaks."""
    cube = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], dtype=float)
    output = server(case, 2, clip, mix)(cube)
    assert np.isfinite(output).all()
    assert np.linalg.norm(output) <= np.sqrt(3) * (1 + 1e-9)


NOT_FINITE = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


@each("value", NOT_FINITE.values())
@compositions
@every_case
def test_non_finite_rows_count_as_zeros(
    case: Case, clip: str, mix: str, value: float, either_path: str
) -> None:
    x = matrix("gaussian", 7, 2, 40)
    x[1, 17], x[4, :] = value, value
    zeroed = x.copy()
    zeroed[[1, 4]] = 0.0
    aggregate = server(case, 2, clip, mix)
    assert np.array_equal(aggregate(x), aggregate(zeroed))
    explained = aggregate.explain(x)
    assert np.flatnonzero(np.asarray(explained.non_finite)).tolist() == [1, 4]
    assert np.array_equal(explained.output, aggregate(zeroed))
    assert np.isnan(x[1, 17]) or np.isinf(x[1, 17])  # the input keeps what it was


@every_case
def test_non_finite_rows_in_one_item_of_a_batch(case: Case) -> None:
    batch = torch.from_numpy(np.stack([matrix("gaussian", 7, 2, 5, seed=s) for s in range(3)]))
    batch[1, 3, 2] = torch.nan
    output = case.rule(2)(batch)
    assert torch.isfinite(output).all()
    for item in range(3):
        alone = case.rule(2)(batch[item])
        torch.testing.assert_close(output[item], alone, rtol=1e-5, atol=1e-6)


@each("step", [ARC(2), StaticClip(1.0), NoClip(), NNM(2)])
def test_non_finite_rows_before_clips_and_mixes(step: object) -> None:
    x = matrix("gaussian", 7, 2, 5)
    zeroed = x.copy()
    x[3, 0], zeroed[3] = np.inf, 0.0
    assert np.array_equal(step(x), step(zeroed))


@every_case
def test_nothing_but_non_finite_rows(case: Case) -> None:
    x = np.full((7, 3), np.nan)
    with pytest.raises(ValueError, match=f"{type(case.rule(2)).__name__}.*non-finite"):
        case.rule(2)(x)
    with pytest.raises(ValueError, match=r"RobustAggregator.*non-finite"):
        server(case, 2, "arc", "nnm")(x)


def test_rows_too_long_for_their_squared_norm() -> None:
    """Finite, but not its square: zeros, and said so."""
    x = matrix("gaussian", 7, 2, 3, np.float64)
    zeroed = x.copy()
    x[2], zeroed[2] = 1e200, 0.0
    explained = RobustAggregator(CWMed(), clip=ARC(2)).explain(x)
    assert np.array_equal(explained.output, RobustAggregator(CWMed(), clip=ARC(2))(zeroed))
    assert np.flatnonzero(explained.non_finite).tolist() == [2]
    with pytest.raises(ValueError, match=r"ARC: every vector is non-finite or too long \(its squ"):
        ARC(2)(np.full((7, 3), 1e200))


def test_a_majority_of_non_finite_rows_is_not_an_error() -> None:
    x = matrix("gaussian", 7, 2, 3)
    x[:6] = np.nan
    assert np.array_equal(RobustAggregator(CWMed())(x), np.zeros(3))
