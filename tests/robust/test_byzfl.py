"""Against ByzFL 0.0.11: the same numbers where definitions agree, and every known disagreement.

ByzFL imports torchvision, which may need the cure that lit_byz brings; conftest.py imports that
before any test.
"""

import byzfl
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
    RobustAggregator,
    StaticClip,
)
from tests._each import each
from tests.robust import _reference as reference
from tests.robust._cases import by_name
from tests.robust._inputs import matrix, tagged_cluster

PAIRS = {
    "average": (lambda f: Average(), lambda f: byzfl.Average()),
    "cwtm": (CWTM, lambda f: byzfl.TrMean(f=f)),
    "cwmed": (lambda f: CWMed(), lambda f: byzfl.Median()),
    "gm": (lambda f: GeometricMedian(), lambda f: byzfl.GeometricMedian(nu=0.1, T=3)),
    "krum": (Krum, lambda f: byzfl.Krum(f=f)),
    "multi_krum": (MultiKrum, lambda f: byzfl.MultiKrum(f=f)),
    "meamed": (MeaMed, lambda f: byzfl.Meamed(f=f)),
    "mda": (MDA, lambda f: byzfl.MDA(f=f)),
    "monna": (MoNNA, lambda f: byzfl.MoNNA(f=f)),
    "centered_clipping": (
        lambda f: CenteredClipping(tau=2.0, iterations=3),
        lambda f: byzfl.CenteredClipping(L=3, tau=2.0),
    ),
}
SIZES = [(5, 2), (8, 1), (11, 1), (11, 5), (17, 4)]
FAMILIES = ["gaussian", "unequal", "heavy", "outliers", "little"]
every_family = each("family", FAMILIES)


def assert_same(ours: np.ndarray, theirs: np.ndarray, x: np.ndarray, tolerance: float) -> None:
    scale = max(float(np.linalg.norm(theirs)), 1e-2 * float(np.median(np.linalg.norm(x, axis=1))))
    assert np.linalg.norm(np.asarray(ours, dtype=np.float64) - theirs) < tolerance * scale


@every_family
@pytest.mark.parametrize("name", PAIRS)
@each("n, f", SIZES)
def test_rules_agree_on_arrays(name: str, family: str, n: int, f: int) -> None:
    """ByzFL computes NumPy arrays in float64."""
    ours, theirs = PAIRS[name]
    x = matrix(family, n, f, 23, np.float64)
    assert_same(ours(f)(x), theirs(f)(x.copy()), x, 1e-7)


@every_family
@pytest.mark.parametrize("name", PAIRS)
@each("n, f", SIZES)
def test_rules_agree_on_tensors(name: str, family: str, n: int, f: int) -> None:
    ours, theirs = PAIRS[name]
    x = matrix(family, n, f, 23)
    expected = theirs(f)(torch.from_numpy(x.copy())).double().numpy()
    assert_same(ours(f)(torch.from_numpy(x)).numpy(), expected, x, 1e-4)


@every_family
@pytest.mark.parametrize("name", [name for name in PAIRS if name != "meamed"])
@each("n, f", SIZES)
def test_whole_servers_agree(name: str, family: str, n: int, f: int) -> None:
    """ARC, then NNM, then the rule, where no tie leaves it a choice (MeaMed nearly always has one
    after mixing)."""
    ours, theirs = PAIRS[name]
    x = matrix(family, n, f, 23, np.float64)
    clipped = reference.arc(x, f)
    unique = len(by_name[name].answers(reference.nnm(clipped, f), f)) == 1
    if unique and reference.neighbour_gap(clipped, f) > 1e-6:
        server = RobustAggregator(ours(f), clip=ARC(f), mix=NNM(f))
        expected = theirs(f)(byzfl.NNM(f=f)(byzfl.ARC(f=f)(x.copy())))
        assert_same(server(x), expected, x, 1e-6)


@every_family
@each("n, f", SIZES)
def test_clips_and_mixing_agree(family: str, n: int, f: int) -> None:
    x = matrix(family, n, f, 23, np.float64)
    np.testing.assert_allclose(ARC(f)(x), byzfl.ARC(f=f)(x.copy()), rtol=1e-9)
    np.testing.assert_allclose(StaticClip(2.0)(x), byzfl.Clipping(c=2.0)(x.copy()), rtol=1e-9)
    if reference.neighbour_gap(x, f) > 1e-6:
        np.testing.assert_allclose(NNM(f)(x), byzfl.NNM(f=f)(x.copy()), rtol=1e-6, atol=1e-9)


def test_bucketing_agrees_where_chance_has_no_say() -> None:
    x = matrix("gaussian", 6, 0, 5, np.float64)
    for s in (1, 6):
        ours, theirs = Bucketing(s)(x), byzfl.Bucketing(s=s)(x.copy())
        np.testing.assert_allclose(np.sort(ours, axis=0), np.sort(theirs, axis=0), rtol=1e-9)


@every_family
@each("n, f", [(5, 2), (8, 1), (11, 5)])
def test_nearest_neighbours_of_any_pivot_agree(family: str, n: int, f: int) -> None:
    x = matrix(family, n, f, 23, np.float64)
    for pivot in range(n):
        if len(reference.monna(x, f, pivot)) == 1:
            assert_same(MoNNA(f, pivot)(x), byzfl.MoNNA(f=f, idx=pivot)(x.copy()), x, 1e-7)


@every_family
@each("n, f", [(5, 2), (8, 1), (11, 1), (11, 5)])
def test_smallest_main_variances_agree_in_one_direction(family: str, n: int, f: int) -> None:
    """With one coordinate ByzFL's power iteration has only one direction to find."""
    x = matrix(family, n, f, 1, np.float64)
    assert_same(SMEA(f)(x), byzfl.SMEA(f=f)(x.copy()), x, 1e-7)


@each("n, f", [(5, 2), (8, 1), (11, 1), (11, 5)])
def test_smallest_main_variances_agree_where_one_subset_stands_out(n: int, f: int) -> None:
    """f vectors a million times longer: whatever direction is looked at, they show."""
    np.random.seed(0)  # noqa: NPY002 - ByzFL draws from it
    x = matrix("outliers", n, f, 23, np.float64)
    assert_same(SMEA(f)(x), byzfl.SMEA(f=f)(x.copy()), x, 1e-7)


# --- disagreements -------------------------------------------------------------------------------


@each("ours, theirs", [(ARC(2), byzfl.ARC(f=2)), (StaticClip(2.0), byzfl.Clipping(c=2.0))])
def test_their_clips_change_their_input(ours: object, theirs: object) -> None:
    """ByzFL clips in place: whoever kept the vectors, a worker's momentum say, has others now."""
    x = torch.from_numpy(matrix("unequal", 7, 2, 5))
    kept = x.clone()
    ours(x)
    assert torch.equal(x, kept)
    theirs(x)
    assert not torch.equal(x, kept)


def test_their_arc_counts_in_floating_point() -> None:
    """⌊2f(n−f)/n⌋ = 57 for n = 242, f = 33; int(2 * f / n * (n - f)) is 56."""
    x = np.arange(1.0, 243.0).reshape(242, 1)
    assert np.sum(ARC(33)(x) != x) == 57
    assert np.sum(byzfl.ARC(f=33)(x.copy()) != x) == 56


def test_their_tensors_are_float32() -> None:
    """ByzFL converts tensors of any precision to float32."""
    x = torch.from_numpy(matrix("gaussian", 7, 2, 5, np.float64))
    assert byzfl.TrMean(f=2)(x).dtype == torch.float32
    assert CWTM(2)(x).dtype == torch.float64


def test_their_mixing_loses_neighbours_of_many_near_vectors() -> None:
    """From 26 vectors on, torch.cdist multiplies matrices in float32: at norm 1e6 the distances
    are noise, and the neighbours with them."""
    for seed in range(200):
        x = tagged_cluster(30, d=48, spread=3, dtype=np.float32, seed=seed)
        if reference.neighbour_gap(reference.exact(x), 7) > 1e-6:
            break
    expected = [set(chosen) for chosen in reference.neighbours(reference.exact(x), 7)]
    for mix, right in ((NNM(7), True), (byzfl.NNM(f=7), False)):
        mixed = mix(torch.from_numpy(x.copy()))
        found = [set(row[-30:].nonzero().flatten().tolist()) for row in mixed]
        assert (found == expected) is right


def test_their_mixing_accepts_a_byzantine_majority() -> None:
    x = matrix("gaussian", 5, 0, 3)
    byzfl.NNM(f=4)(x.copy())
    byzfl.ARC(f=4)(x.copy())
    for ours in (NNM(4), ARC(4)):
        with pytest.raises(ValueError, match="2f < n"):
            ours(x)


def test_their_centered_clipping_remembers() -> None:
    """ByzFL starts each call where the last one ended; ours has no memory."""
    x = matrix("gaussian", 7, 2, 5, np.float64)
    ours, theirs = CenteredClipping(tau=1.0, iterations=1), byzfl.CenteredClipping(L=1, tau=1.0)
    np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-9)
    first, second = ours(x), theirs(x)
    np.testing.assert_allclose(ours(x), first, rtol=0)
    assert np.linalg.norm(second - first) > 0.1


def test_their_spectral_filter_is_random() -> None:
    """ByzFL takes one power iteration from a random vector for the main direction; ours takes the
    direction itself, and gives the same output every time."""
    x = matrix("little", 11, 3, 23, np.float64)
    np.random.seed(0)  # noqa: NPY002 - ByzFL draws from it
    theirs = [byzfl.CAF(f=3)(x) for _ in range(5)]
    assert max(np.linalg.norm(a - b) for a in theirs for b in theirs) > 1e-3
    assert np.array_equal(CAF(3)(x), CAF(3)(x.copy()))


def test_the_spectral_filters_agree_where_one_pass_is_enough() -> None:
    """With one coordinate there is only one direction, and nothing is left to chance."""
    x = np.array([[-1.0], [1.05], [-0.95], [1.0]])
    np.testing.assert_allclose(CAF(1)(x), byzfl.CAF(f=1)(x), rtol=1e-9)


def test_their_spectral_filter_measures_with_vectors_that_have_no_weight() -> None:
    """After the first pass 100 has weight 0. ByzFL still divides by its distance, so that the
    others lose little per pass; ours divides by the largest distance that still counts."""
    x = np.array([[0.0], [1.0], [2.0], [4.0], [100.0]])
    assert float(CAF(1)(x)[0]) == pytest.approx(1.7646, abs=1e-4)
    assert float(byzfl.CAF(f=1)(x)[0]) == pytest.approx(1.6029, abs=1e-4)


def test_their_spectral_filter_has_no_answer_without_byzantine_workers() -> None:
    x = matrix("gaussian", 5, 0, 3, np.float64)
    assert byzfl.CAF(f=0)(x) is None
    np.testing.assert_allclose(CAF(0)(x), x.mean(axis=0), rtol=1e-9)


def test_their_smallest_main_variance_is_random() -> None:
    """One power iteration from a random vector there, another one for each subset, so that the
    subset is often not the best; the exact eigenvalue here."""
    x = matrix("gaussian", 9, 3, 23, np.float64)
    np.random.seed(0)  # noqa: NPY002 - ByzFL draws from it
    variances = {
        tuple(x[chosen].mean(axis=0).round(9)): reference.main_variance(x[chosen])
        for chosen in reference.subsets(9, 3)
    }
    theirs = [variances[tuple(byzfl.SMEA(f=3)(x).round(9))] for _ in range(5)]
    ours = variances[tuple(SMEA(3)(x).round(9))]
    assert ours == min(variances.values())
    assert max(theirs) > 1.05 * ours


def test_their_smallest_main_variance_has_no_answer_for_copies() -> None:
    """Where all vectors are equal there is no direction: no subset is taken, and then used."""
    x = np.ones((5, 3))
    with np.errstate(invalid="ignore"), pytest.raises(IndexError):
        byzfl.SMEA(f=1)(x.copy())
    np.testing.assert_allclose(SMEA(1)(x), np.ones(3), rtol=1e-12)


def test_their_rules_pass_on_what_is_not_finite() -> None:
    """One broken vector breaks ByzFL's output; ours counts it as zeros."""
    x = matrix("gaussian", 7, 2, 5, np.float64)
    x[3] = np.nan
    zeroed = np.nan_to_num(x)
    for ours, theirs in (PAIRS[name] for name in ("average", "cwmed", "gm", "centered_clipping")):
        assert not np.isfinite(theirs(2)(x.copy())).all()
        assert np.array_equal(ours(2)(x), ours(2)(zeroed))


def test_their_buckets_cannot_be_repeated() -> None:
    x = matrix("gaussian", 12, 0, 3, np.float64)
    theirs = byzfl.Bucketing(s=2)
    assert any(not np.array_equal(theirs(x), theirs(x)) for _ in range(5))
    assert np.array_equal(Bucketing(2, seed=4)(x), Bucketing(2, seed=4)(x))
