"""Smallest maximum eigenvalue averaging."""

from typing import ClassVar

import torch

from lit_byz.robust._registries import RULES
from lit_byz.robust._subsets import SubsetRule

# Squared distances beyond it may be infinite, and their sums would be.
LARGEST = 1e300


@RULES.register("smea")
class SMEA(SubsetRule):
    """Smallest maximum eigenvalue averaging: the mean of the n − f vectors of least main variance.

    Main variance is the largest eigenvalue of a subset's covariance: the variance along the
    direction in which it is greatest. Allouah et al., *On the Privacy-Robustness-Utility Trilemma
    in Distributed Learning*, ICML 2023. Exact, by looking at all subsets; more than 50,000 of them
    is an error. Of eigenvalues that are equal up to rounding the subset that comes first in
    lexicographic order is taken.

    >>> SMEA(f=1)(torch.tensor([[0.0], [1.0], [9.0]]))
    tensor([0.5000])
    """

    # Each takes an eigenvalue computation.
    most_subsets: ClassVar[int] = 50_000
    # Among vectors that were mixed ties are common: three copies of one and two of another are
    # spread as far as two and three. Rounding must not choose between their means.
    tie: ClassVar[float] = 1e-8

    def spreads(self, distances: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
        inside = distances[:, members.unsqueeze(2), members.unsqueeze(1)].clamp(max=LARGEST)
        # Inner products ⟨x_i − μ, x_j − μ⟩ from distances alone (double centring): their matrix has
        # the eigenvalues of the covariance, times the subset's size, which is the same for all.
        to_others = inside.mean(-1)
        total = to_others.mean(-1)[..., None, None]
        centred = (to_others.unsqueeze(-1) + to_others.unsqueeze(-2) - inside - total) / 2
        return torch.linalg.eigvalsh(centred)[..., -1].clamp(min=0)
