"""Coordinate-wise rules: one fused pass over blocks of columns of C·B."""

from dataclasses import dataclass

import torch

from lit_byz.robust import _kernels
from lit_byz.robust._network import sorting_network, window_network

# What a pass over many probes answers where there are more rows than it is made for.
TOO_MANY = -1


@dataclass(frozen=True)
class Reduction:
    """What a rule makes of the n values of one coordinate, sorted.

    The mean of the sorted positions [begin, end); or, where ``nearest`` is set, the mean of that
    many values nearest to the median.
    """

    begin: int
    end: int
    nearest: int = 0

    def comparators(self, n: int) -> tuple[tuple[int, int], ...]:
        return sorting_network(n) if self.nearest else window_network(n, self.begin, self.end)


@dataclass(frozen=True)
class ColumnsResult:
    """``output`` (K, d) and ``damages`` (K,), each where asked for; ``finite``: all inputs were."""

    output: torch.Tensor | None
    damages: torch.Tensor | None
    finite: bool


def reduce_columns(
    basis: torch.Tensor,
    coefficients: torch.Tensor | None,
    n: int,
    reduction: Reduction,
    centre: torch.Tensor | None = None,
    *,
    keep: bool = False,
) -> ColumnsResult:
    """Apply ``reduction`` to each column of ``coefficients @ basis``.

    ``basis`` is (m, d), ``coefficients`` (K, n, m), or None for the basis itself. With ``centre``
    (m,) given, the result is not the K outputs but their distances from ``centre @ basis``; with
    ``keep`` it is both.
    """
    if _kernels.serves(basis):
        return _compiled(basis, coefficients, n, reduction, centre, keep)
    return _plain(basis, coefficients, n, reduction, centre, keep)


def probe_columns(
    basis: torch.Tensor,
    coefficients: torch.Tensor,
    n: int,
    reduction: Reduction,
    centre: torch.Tensor,
    lengths: torch.Tensor,
    *,
    keep: bool = False,
) -> ColumnsResult | None:
    """What :func:`reduce_columns` says with a ``centre``, quicker where ``coefficients`` are few.

    These are (K, n, m + 1), the last column for ``centre @ basis`` itself: most of them should be
    zero, or the same in most rows. ``lengths`` (m + 1,) are the vectors' norms. None where there is
    no such pass for these numbers.
    """
    if reduction.nearest or basis.dtype is not torch.float32 or not _kernels.serves(basis):
        return None
    probes = len(coefficients)
    damages = torch.empty(probes, dtype=torch.float64)
    output = basis.new_empty(probes, basis.shape[1]) if keep else None
    c, target, sizes = (x.to(basis.dtype).contiguous() for x in (coefficients, centre, lengths))
    limits = (reduction.begin, reduction.end)
    broken = _kernels.call(
        "probes", basis, c, probes, n, *limits, target, sizes, output, damages, effort=probes
    )
    return None if broken == TOO_MANY else ColumnsResult(output, damages, not broken)


def _compiled(
    basis: torch.Tensor,
    coefficients: torch.Tensor | None,
    n: int,
    reduction: Reduction,
    centre: torch.Tensor | None,
    keep: bool,
) -> ColumnsResult:
    probes = 1 if coefficients is None else coefficients.shape[0]
    c = None if coefficients is None else coefficients.to(basis.dtype).contiguous()
    comparators = reduction.comparators(n)
    pairs = torch.tensor(comparators, dtype=torch.int32).reshape(-1)
    output = damages = target = None
    if centre is None or keep:
        output = torch.empty(probes, basis.shape[1], dtype=basis.dtype)
    if centre is not None:
        target = centre.to(basis.dtype).contiguous()
        damages = torch.empty(probes, dtype=torch.float64)
    broken = _kernels.call(
        "columns",
        basis,
        c,
        probes,
        n,
        pairs,
        len(comparators),
        reduction.begin,
        reduction.end,
        reduction.nearest,
        target,
        output,
        damages,
        effort=probes * n,
    )
    return ColumnsResult(output, damages, not broken)


def _plain(
    basis: torch.Tensor,
    coefficients: torch.Tensor | None,
    n: int,
    reduction: Reduction,
    centre: torch.Tensor | None,
    keep: bool,
) -> ColumnsResult:
    probes = 1 if coefficients is None else coefficients.shape[0]
    c = None if coefficients is None else coefficients.to(basis)
    # On a CPU a block of all rows should stay in cache; a GPU wants few, large launches.
    budget = 1 << 18 if basis.device.type == "cpu" else 1 << 26
    width = max(256, budget // (probes * n))
    outputs, total = [], torch.zeros(probes, dtype=torch.float64, device=basis.device)
    finite = torch.ones((), dtype=torch.bool, device=basis.device)
    for block in basis.split(width, dim=1):
        finite &= torch.isfinite(block).all()
        rows = list((block[None] if c is None else c @ block).unbind(1))
        result = _reduce_rows(rows, reduction)
        if centre is None or keep:
            outputs.append(result)
        if centre is not None:
            total += (result - centre.to(block) @ block).double().square().sum(1)
    output = torch.cat(outputs, dim=1) if outputs else None
    # One look at the device for all that there is to know.
    known = torch.cat([total.sqrt(), finite.double().unsqueeze(0)]).cpu()
    return ColumnsResult(output, None if centre is None else known[:-1], bool(known[-1]))


def _reduce_rows(rows: list[torch.Tensor], reduction: Reduction) -> torch.Tensor:
    n = len(rows)
    for i, j in reduction.comparators(n):
        rows[i], rows[j] = torch.minimum(rows[i], rows[j]), torch.maximum(rows[i], rows[j])
    if not reduction.nearest:
        return _window_mean(rows, reduction.begin, reduction.end)
    median = _window_mean(rows, (n - 1) // 2, n // 2 + 1)
    keep = reduction.nearest
    best = _window_mean(rows, 0, keep)
    for start in range(n - keep):
        nearer = rows[start + keep] - median < median - rows[start]
        best = torch.where(nearer, _window_mean(rows, start + 1, start + 1 + keep), best)
    return best


def _window_mean(rows: list[torch.Tensor], begin: int, end: int) -> torch.Tensor:
    total = rows[begin].clone()
    for row in rows[begin + 1 : end]:
        total += row
    return total / (end - begin)
