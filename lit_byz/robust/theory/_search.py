"""How bad can a rule be? A search for inputs with a large robustness ratio.

The ratio of an input x and a set S of n − f of its rows is ‖F(x) − x̄_S‖² over the mean of
‖x_i − x̄_S‖² in S. A rule is (f, κ)-robust if κ is at least every ratio, so whatever the search
finds is a lower bound on κ. It proves no upper bound.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lit_byz._checks import check_integer
from lit_byz._streams import Stream, torch_generator
from lit_byz.robust._inputs import as_tensor
from lit_byz.robust.theory._bounds import OWNER, check_workers

Aggregator = Callable[[Tensor], Tensor | np.ndarray]

# An output this close to x̄_S, relative to the largest row, differs from it by rounding only.
ROUNDING = 1e-12
# More sets S than this are not enumerated.
SETS_AT_MOST = 2000


@dataclass(frozen=True)
class WorstInput:
    """The worst case that a search has seen."""

    ratio: float
    x: Tensor
    """The input, (n, d), float64."""
    honest: tuple[int, ...]
    """The rows of S."""
    evaluations: int


def worst_ratio(
    x: Tensor | np.ndarray, output: Tensor | np.ndarray, f: int, *, tolerance: float = ROUNDING
) -> tuple[float, tuple[int, ...]]:
    """The largest ratio of x (n, d) with the output F(x) (d) over every S of n − f rows, and its S.

    An error ‖F(x) − x̄_S‖ up to ``tolerance`` times the largest row counts as none. An S without any
    spread has then ratio 0 or infinity.
    """
    rows = as_tensor(OWNER, x, "x").double()
    if rows.dim() != 2:
        raise ValueError(f"{OWNER}: x must have shape (n, d), got {tuple(rows.shape)}")
    made = _of_shape(output, "output", rows.shape[1:])
    n, f = check_workers(rows.shape[0], f)
    if math.comb(n, f) > SETS_AT_MOST:
        raise ValueError(
            f"{OWNER}: n and f must leave at most {SETS_AT_MOST} sets S, "
            f"got {math.comb(n, f)} for n={n}, f={f}"
        )
    sets = _all_sets(n, f)
    ratios = _ratios(rows, made, sets, tolerance)
    best = int(ratios.argmax())
    return float(ratios[best]), tuple(sets[best].nonzero().flatten().tolist())


def search_kappa(
    aggregator: Aggregator,
    n: int,
    f: int,
    d: int = 2,
    *,
    restarts: int = 8,
    steps: int = 60,
    seed: int = 0,
    tolerance: float = ROUNDING,
) -> WorstInput:
    """The worst ratio that gradient ascent finds for ``aggregator``, with its input.

    ``aggregator`` maps float64 tensors (..., n, d) to tensors or arrays (..., d). Gradients are
    central differences, all of one step in a single batch: rules that sort or select have no useful
    derivative to offer, and their fused paths none at all. When no step along the gradient helps, a
    few random moves of one or all rows are tried instead. Starts are the worst input of two
    distinct vectors (one such is behind the lower bound f/(n−2f)), tight clusters beside outliers,
    and Gaussian vectors on several scales. A smooth bump may be climbed; a narrow one may be
    missed.

    The sets S are all of them where they are few (``SETS_AT_MOST``), else the first n − f rows
    alone, which is enough for a rule that does not care about the order of its inputs.
    ``tolerance`` is that of :func:`worst_ratio`; an iterative rule needs one above its own.
    """
    n, f = check_workers(n, f)
    d = check_integer(OWNER, "d", d, minimum=1)
    restarts = check_integer(OWNER, "restarts", restarts, minimum=1)
    steps = check_integer(OWNER, "steps", steps, minimum=0)
    if math.comb(n, f) <= SETS_AT_MOST:
        sets = _all_sets(n, f)
    else:
        sets = (torch.arange(n) < n - f).to(torch.float64).unsqueeze(0)
    climb = _Climb(aggregator, sets, tolerance, torch_generator(seed, Stream.BAD_INPUTS))
    clusters, _ = climb.best_of(_two_clusters(n, d))
    for start in range(restarts):
        climb.run(_start(start, clusters, f, climb.generator), steps)
        if math.isinf(climb.best):
            break
    ratios = _ratios(climb.x, _outputs(aggregator, climb.x), sets, tolerance)
    honest = sets[int(ratios.argmax())].nonzero().flatten().tolist()
    return WorstInput(climb.best, climb.x, tuple(honest), climb.evaluations)


class _Climb:
    """Gradient ascent on the worst ratio over the sets; keeps the best over all its runs."""

    def __init__(
        self, aggregator: Aggregator, sets: Tensor, tolerance: float, generator: torch.Generator
    ) -> None:
        self.aggregator = aggregator
        self.sets = sets
        self.tolerance = tolerance
        self.generator = generator
        self.best = -math.inf
        self.x = torch.empty(0)
        self.evaluations = 0

    def run(self, x: Tensor, steps: int) -> None:
        value = float(self._values(x.unsqueeze(0))[0])
        reach = 1.0
        for _ in range(steps):
            if not math.isfinite(value):
                break
            moved, moved_value = self.best_of(x + self._along_gradient(x, reach))
            if moved_value <= value:
                moved, moved_value = self.best_of(x + self._at_random(x, reach))
            if moved_value > value:
                x, value, reach = moved, moved_value, min(1.0, 2 * reach)
            else:
                reach /= 2
            if reach < 1e-6:
                break
        if value > self.best:
            self.best, self.x = value, x

    def _values(self, batch: Tensor) -> Tensor:
        """The worst ratio of each input of the batch (m, n, d)."""
        self.evaluations += len(batch)
        outputs = _outputs(self.aggregator, batch)
        return _ratios(batch, outputs, self.sets, self.tolerance).amax(dim=-1)

    def best_of(self, batch: Tensor) -> tuple[Tensor, float]:
        """The input (n, d) with the largest ratio in a batch (m, n, d), and that ratio."""
        values = self._values(batch)
        best = int(values.argmax())
        return batch[best], float(values[best])

    def _along_gradient(self, x: Tensor, reach: float) -> Tensor:
        """Moves (m, n, d) along the gradient, from ``reach`` times the size of x downwards."""
        scale = _size(x)
        h = 1e-6 * scale
        offsets = h * torch.eye(x.numel(), dtype=x.dtype).view(-1, *x.shape)
        values = self._values(torch.cat([x + offsets, x - offsets]))
        difference = values[: x.numel()] - values[x.numel() :]
        # An infinite or undefined difference is a jump of the rule, not a slope.
        gradient = torch.nan_to_num(difference, nan=0.0, posinf=0.0, neginf=0.0).view_as(x)
        length = float(gradient.norm())
        if length == 0:
            return torch.zeros(1, *x.shape, dtype=x.dtype)
        factors = reach * scale * torch.logspace(0, -14, 8, base=2, dtype=x.dtype)
        return factors.view(-1, 1, 1) * (gradient / length)

    def _at_random(self, x: Tensor, reach: float) -> Tensor:
        """Moves (m, n, d): half of them of one row, half of all rows."""
        moves = torch.randn(16, *x.shape, generator=self.generator, dtype=x.dtype)
        rows = torch.randint(len(x), (8,), generator=self.generator)
        moves[:8] *= (torch.arange(len(x)) == rows.unsqueeze(1)).unsqueeze(-1)
        return reach * _size(x) * moves


def _outputs(aggregator: Aggregator, x: Tensor) -> Tensor:
    """The outputs (..., d) for inputs (..., n, d)."""
    return _of_shape(aggregator(x), "aggregator's output", (*x.shape[:-2], x.shape[-1]))


def _of_shape(x: Tensor | np.ndarray, name: str, shape: tuple[int, ...]) -> Tensor:
    found = as_tensor(OWNER, x, name).double()
    if tuple(found.shape) != tuple(shape):
        raise ValueError(
            f"{OWNER}: {name} must have shape {tuple(shape)}, got {tuple(found.shape)}"
        )
    return found


def _ratios(x: Tensor, output: Tensor, sets: Tensor, tolerance: float) -> Tensor:
    """The ratio of each input of (..., n, d) for each row of ``sets`` (sets, n): (..., sets)."""
    weights = sets / sets.sum(dim=1, keepdim=True)
    means = weights @ x
    # Σ_S ‖x_i − x̄_S‖² = Σ_{i,j ∈ S} ‖x_i − x_j‖² / 2|S|: exactly 0 where the rows are equal.
    distances = (x.unsqueeze(-2) - x.unsqueeze(-3)).square().sum(dim=-1)
    spread = ((weights @ distances) * weights).sum(dim=-1) / 2
    error = (output.unsqueeze(-2) - means).norm(dim=-1)
    negligible = error <= tolerance * x.norm(dim=-1).amax(dim=-1, keepdim=True)
    return torch.where(negligible, 0.0, error.square() / spread)


def _all_sets(n: int, f: int) -> Tensor:
    """Indicator rows of every set of n − f of n rows."""
    sets = torch.ones(math.comb(n, f), n, dtype=torch.float64)
    for row, left_out in enumerate(itertools.combinations(range(n), f)):
        sets[row, list(left_out)] = 0.0
    return sets


def _size(x: Tensor) -> float:
    return float(x.norm(dim=-1).max()) or 1.0


def _two_clusters(n: int, d: int) -> Tensor:
    """Inputs (2n, n, d): k copies of one vector in front and n − k zeros behind, or the reverse."""
    ones = torch.zeros(n, n, d, dtype=torch.float64)
    ones[..., 0] = torch.ones(n, n, dtype=torch.float64).tril()
    return torch.cat([ones, ones.flip(1)])


def _start(index: int, clusters: Tensor, f: int, generator: torch.Generator) -> Tensor:
    """Four families of starting points in turn; the first n − f rows are thought of as honest."""
    n, d = clusters.shape
    noise = torch.randn(n, d, generator=generator, dtype=torch.float64)
    family, turn = index % 4, index // 4
    if family == 0:
        return clusters + (0.0 if turn == 0 else 0.1 * turn) * noise
    if family == 1:
        return noise
    if family == 2:  # honest rows close together and far from 0, the others anywhere
        noise[: n - f] = 0.1 * noise[: n - f] + 1.0
        return noise
    return noise * torch.logspace(-1, 1, n, dtype=torch.float64).unsqueeze(1)
