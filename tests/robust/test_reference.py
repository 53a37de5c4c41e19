"""The fast paths against naive float64 references."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from lit_byz.robust import GeometricMedian
from tests._each import each
from tests.robust import _reference as reference
from tests.robust._cases import CASES, CLIPS, MIXES, Case, answers, server
from tests.robust._inputs import FAMILIES, SIZES, matrix
from tests.robust._properties import relative_error
from tests.robust._reference import Answer

slow = pytest.mark.slow
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
# The coordinate-wise median of the first three, (1, 1, 1), is longer than each of them.
FACES = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-7}


@each("family", FAMILIES)
@every_case
def test_rule_alone(case: Case, family: str, either_path: str) -> None:
    every = SIZES if either_path == "compiled" else SIZES[::3]
    for dtype, sizes in ((np.float32, every), (np.float64, every[::4])):
        for n, f in sizes:
            if n <= case.most_n:
                x = matrix(family, n, f, d=67, dtype=dtype)
                output = case.rule(f)(torch.from_numpy(x))
                error = relative_error(output, case.answers(reference.exact(x), f), x)
                assert error < TOLERANCE[dtype], f"n={n}, f={f}, {dtype.__name__}: {error:.2g}"


def well_separated(family: str, n: int, f: int, clip: str) -> np.ndarray:
    """A matrix on which NNM has no tie that float32 rounding could decide either way."""
    for seed in range(20):
        x = matrix(family, n, f, d=67, seed=seed)
        clipped = CLIPS[clip][1](reference.exact(x), f)
        if f == 0 or reference.neighbour_gap(clipped, f) > 1e-9:
            return x
    raise AssertionError(f"{family} has a tie for every seed")


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "sparse"])
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([size for size in SIZES[1::3] if size[0] <= 17], id="few"),
        pytest.param([size for size in SIZES[1::3] if size[0] > 17], id="many", marks=slow),
    ],
)
@each("clip", CLIPS)
@each("mix", MIXES)
def test_compositions(family: str, sizes: list[tuple[int, int]], clip: str, mix: str) -> None:
    for n, f in sizes:
        if family in ("flipped", "little") and f > 1 and mix == "nnm":
            x = matrix(family, n, f, d=67)  # copies of one vector: ties between equals
        else:
            x = well_separated(family, n, f, clip) if mix == "nnm" else matrix(family, n, f, d=67)
        mixed = MIXES[mix][1](CLIPS[clip][1](reference.exact(x), f), f)
        for case in CASES:
            if n <= case.most_n:
                output = server(case, f, clip, mix)(torch.from_numpy(x))
                error = relative_error(output, case.answers(mixed, f), x)
                assert error < 1e-5, f"{case.name}, n={n}, f={f}: {error:.2g}"


@each("mix", MIXES)
@each("clip", CLIPS)
@every_case
def test_compiled_and_plain_torch_agree(
    case: Case, clip: str, mix: str, use_kernels: Callable[[bool], None]
) -> None:
    for dtype, tolerance in TOLERANCE.items():
        for family in ("gaussian", "clustered", "flipped", "sparse"):
            for n, f, d in [(3, 1, 1), (8, 2, 300), (39, 9, 63)]:
                if n <= case.most_n:
                    x = matrix(family, n, f, d, dtype)
                    outputs = []
                    for compiled in (True, False):
                        use_kernels(compiled)
                        outputs.append(server(case, f, clip, mix)(torch.from_numpy(x)).numpy())
                    allowed: Sequence[Answer] = [outputs[1]]
                    if case.name == "meamed" and mix == "nnm":  # mixed values are often equal
                        allowed = answers(case, x, f, clip, mix)
                    error = relative_error(outputs[0], allowed, x)
                    assert error < tolerance, f"{family}, n={n}, d={d}: {error:.2g}"


@pytest.mark.parametrize("case", [c for c in CASES if c.most_n >= 28], ids=lambda case: case.name)
def test_long_vectors(case: Case, use_kernels: Callable[[bool], None]) -> None:
    """More coordinates than any block of a pass holds, and not a multiple of its size."""
    x = matrix("little", 28, 9, d=38_001)
    allowed = answers(case, x, 9, "arc", "nnm")
    for compiled in (True, False):
        use_kernels(compiled)
        output = server(case, 9, "arc", "nnm")(torch.from_numpy(x))
        assert relative_error(output, allowed, x) < 1e-5, f"compiled: {compiled}"


@each("family", ["gaussian", "sparse", "unequal"])
@every_case
def test_bound_on_the_output(case: Case, family: str) -> None:
    """F† clips the output at the largest input norm, and only where it is longer."""
    for x in (matrix(family, 7, 2, 40, np.float64), FACES):
        output = server(case, 1)(torch.from_numpy(x)).numpy()
        bounded = server(case, 1, bound_output=True)(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(bounded, reference.bound_output(output, x), rtol=1e-9)


@each("family", FAMILIES)
def test_geometric_median_minimises_the_sum_of_distances(family: str) -> None:
    """Run to convergence, no small move makes the sum of distances smaller."""
    x = matrix(family, 9, 3, d=12, dtype=np.float64)
    scale = np.linalg.norm(x, axis=1).max()
    rule = GeometricMedian(nu=1e-12 * scale, iterations=1000, tolerance=1e-10)
    found = rule(x)
    total = np.linalg.norm(x - found, axis=1).sum()
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for move in rng.normal(size=(20, 12)):
            step = size * scale * move / np.linalg.norm(move)
            assert np.linalg.norm(x - found - step, axis=1).sum() >= total * (1 - 1e-6)


def test_geometric_median_stops_at_its_tolerance() -> None:
    """An early end is one of the iterations on the way, near the limit, and nearer the lower."""
    x = matrix("gaussian", 9, 3, d=12, dtype=np.float64)
    limit = GeometricMedian(nu=0.1, iterations=400)(x)
    path = [GeometricMedian(nu=0.1, iterations=k)(x) for k in range(1, 60)]
    ends = []
    for tolerance in (0.3, 1e-2, 1e-5):
        output = GeometricMedian(nu=0.1, iterations=400, tolerance=tolerance)(x)
        ends.append(int(np.argmin([np.linalg.norm(output - point) for point in path])))
        np.testing.assert_allclose(output, path[ends[-1]], rtol=1e-9)
        assert np.linalg.norm(output - limit) < 30 * tolerance * np.linalg.norm(limit)
    assert ends == sorted(set(ends))


@each("tolerance", [0.0, 1e-10])
def test_geometric_median_is_not_trapped_by_a_vector_at_its_start(tolerance: float) -> None:
    """Iterations start at 0; a vector of zeros there holds z back but must not hold it for good."""
    x = np.tile(matrix("gaussian", 1, 0, 5, np.float64), (5, 1))
    x[:2] = 0.0
    rule = GeometricMedian(nu=1e-12, iterations=1000, tolerance=tolerance)
    np.testing.assert_allclose(rule(x), x[-1], rtol=1e-6)
