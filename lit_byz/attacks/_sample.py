"""A few columns that speak for all of them."""

import torch

from lit_byz.robust import Basis
from lit_byz.robust.vectors import draw_columns

# This part of the sample is drawn evenly, so that no column is left out for being small.
EVEN = 0.1


def sample_columns(basis: Basis, honest: Basis, count: int) -> Basis:
    """``count`` columns of a basis whose first rows are the honest vectors, for coordinate rules.

    In a network's gradients a few coordinates carry most of the length. Column j is drawn with a
    probability p_j that follows its mean square and multiplied by 1/√(count · p_j), so that a sum
    of squares over the sample estimates the sum over all columns: the distance between outputs of
    any rule that treats coordinates alike, whatever their unit. The draw is systematic, equally
    spaced in the cumulated p, hence without randomness.
    """
    mean, deviation = honest.spread
    compiled = draw_columns(basis, mean, deviation, EVEN, count)
    if compiled is not None:
        return Basis(compiled, trusted=basis.trusted)
    chance = mean.double().square_().addcmul_(deviation.double(), deviation.double())
    total = basis.total(basis.check(chance).sum()).clamp(min=torch.finfo(torch.float64).tiny)
    chance = chance.mul_((1 - EVEN) / total).add_(EVEN / basis.width)
    ladder = chance.cumsum(0)
    begin, end = _place(basis, ladder)
    rungs = (torch.arange(count, device=ladder.device) + 0.5) * (end / count)
    if basis.shard is not None:
        ladder += begin
        rungs = rungs[(rungs > begin) & (rungs <= ladder[-1])]
    drawn = torch.searchsorted(ladder, rungs)
    scale = (count * chance[drawn]).rsqrt().to(basis.rows)
    columns = basis.rows[:, drawn] * scale
    # All processes go on with the whole sample, which is small.
    joined = columns if basis.shard is None else basis.shard.join(columns)
    return Basis(joined, trusted=basis.trusted)


def _place(basis: Basis, ladder: torch.Tensor) -> tuple[torch.Tensor | float, torch.Tensor]:
    """Where a ladder begins among those of all shards, and where the last of them ends."""
    if basis.shard is None:
        return 0.0, ladder[-1]
    heights = basis.shard.each(ladder[-1:].cpu()).flatten().to(ladder)
    begins = [torch.zeros_like(ladder[-1])]
    for height in heights:
        begins.append(begins[-1] + height)
    return begins[basis.shard.place], begins[-1]


def thin(sample: Basis, keep: int) -> Basis:
    """Every ``keep``-th column of such a sample, which is a sample too."""
    return Basis(sample.rows[:, ::keep] * keep**0.5, trusted=sample.trusted)
