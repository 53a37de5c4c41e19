"""What a server says about its own work."""

import numpy as np
import pytest
import torch

from lit_byz.robust import (
    ARC,
    CWTM,
    MDA,
    NNM,
    SMEA,
    Average,
    Krum,
    MoNNA,
    MultiKrum,
    RobustAggregator,
)
from tests._each import each
from tests.robust import _reference as reference
from tests.robust._cases import CASES, CLIPS, MIXES, Case, server
from tests.robust._inputs import FAMILIES, matrix

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@each("mix", MIXES)
@each("clip", CLIPS)
@every_case
@each("family", ("gaussian", "outliers", "sparse"))
def test_explanation_matches_the_call(
    case: Case, clip: str, mix: str, either_path: str, family: str
) -> None:
    x = torch.from_numpy(matrix(family, 7, 2, 30, np.float64))
    aggregate = server(case, 2, clip, mix, bound_output=False)
    explained = aggregate.explain(x)
    assert torch.equal(explained.output, aggregate(x))
    np.testing.assert_allclose(explained.norms, reference.norms(x.numpy()), rtol=1e-12)
    assert explained.clipped.dtype == torch.bool
    assert explained.clipped.shape == explained.norms.shape == (7,)
    assert not explained.non_finite.any()
    assert explained.non_finite.shape == (7,)
    if explained.weights is not None:
        made = explained.weights.to(x) @ x
        torch.testing.assert_close(made, explained.output, rtol=1e-9, atol=1e-9)


def test_thresholds() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 1.0], [6.0, 8.0], [0.0, 2.0]])
    for clip, threshold, clipped in (
        ("none", torch.inf, [False] * 4),
        ("static", 3.0, [True, False, True, False]),
        ("arc", 5.0, [False, False, True, False]),
    ):
        explained = server(CASES[0], 1, clip).explain(x)
        assert float(explained.threshold) == threshold
        assert explained.clipped.tolist() == clipped


@each("rule, count", [(Krum(2), 1), (MultiKrum(2), 5), (MDA(2), 5), (MoNNA(2, 3), 5), (SMEA(2), 5)])
def test_selected_rows(rule: object, count: int) -> None:
    x = torch.from_numpy(matrix("outliers", 7, 2, 30, np.float64))
    explained = RobustAggregator(rule).explain(x)
    assert int(explained.selected.sum()) == count
    torch.testing.assert_close(x[explained.selected].mean(0), explained.output)
    distant = x.norm(dim=1) > 1e3
    assert not (explained.selected & distant).any()


def test_a_rule_that_weighs_nothing_says_so() -> None:
    explained = RobustAggregator(CWTM(1), clip=ARC(1), mix=NNM(1)).explain(torch.ones(4, 2))
    assert explained.weights is None
    assert explained.selected is None


def test_batches_are_explained_item_by_item() -> None:
    batch = torch.from_numpy(np.stack([matrix(f, 7, 2, 5, np.float64) for f in FAMILIES]))
    aggregate = RobustAggregator(MultiKrum(2), clip=ARC(2))
    together = aggregate.explain(batch)
    assert together.threshold.shape == (len(FAMILIES),)
    for i, x in enumerate(batch):
        alone = aggregate.explain(x)
        assert torch.equal(together.clipped[i], alone.clipped)
        assert torch.equal(together.selected[i], alone.selected)
        torch.testing.assert_close(together.norms[i], alone.norms)


def test_arrays_and_lists() -> None:
    x = matrix("gaussian", 7, 2, 5)
    explained = RobustAggregator(Average(), clip=ARC(2)).explain(x)
    assert isinstance(explained.output, np.ndarray)
    assert isinstance(RobustAggregator(Average()).explain(list(x)).output, np.ndarray)
