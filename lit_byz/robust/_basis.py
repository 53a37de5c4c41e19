"""Vectors that exist, some or all of their columns, and their inner products."""

import math
from functools import cached_property

import torch

from lit_byz.robust import _kernels
from lit_byz.robust._shard import Shard


class NonFiniteRows(Exception):
    """Some row of a basis is not finite: take ``basis.sanitised()`` and start again."""


class Basis:
    """The vectors that exist, (..., m, d), and their inner products.

    Finiteness is noticed on the way, not in a pass of its own: :class:`NonFiniteRows` is raised by
    whichever pass meets the first bad row. With a ``shard``, the rows are only some columns of the
    vectors, others are in other processes, and what concerns whole vectors is heard from all.
    """

    def __init__(
        self, rows: torch.Tensor, *, trusted: bool = False, shard: Shard | None = None
    ) -> None:
        self.rows = rows
        self.trusted = trusted
        self.shard = shard

    def like(self, rows: torch.Tensor, *, trusted: bool = False) -> "Basis":
        """Other vectors, divided as these are."""
        return Basis(rows, trusted=trusted, shard=self.shard)

    @property
    def size(self) -> int:
        return self.rows.shape[-2]

    @property
    def width(self) -> int:
        """How many columns the vectors have, here and elsewhere."""
        return self.rows.shape[-1] if self.shard is None else self.shard.total

    def over_rows(self, coefficients: torch.Tensor) -> torch.Tensor:
        """Coefficients (..., size) over the vectors, as (..., m) over the rows that there are."""
        return coefficients

    def agree(self, finite: bool) -> None:
        """Raise :class:`NonFiniteRows` unless all that is here, and elsewhere, is finite."""
        if self.trusted:
            return
        if self.shard is not None:
            finite = float(self.shard.sum(torch.tensor(float(not finite)))) == 0
        if not finite:
            raise NonFiniteRows

    def total(self, part: torch.Tensor) -> torch.Tensor:
        """A sum over columns, from that over the columns that are here."""
        return part if self.shard is None else self.shard.sum(part).to(part)

    def norm(self, vector: torch.Tensor) -> torch.Tensor:
        """The length of ``vector`` (d,), of which the columns that are here are given."""
        if self.shard is None:
            return vector.norm()
        return self.shard.sum(vector.double().square().sum()).sqrt().to(vector)

    def draw(self, generator: torch.Generator) -> torch.Tensor:
        """A standard normal number for every column (d,), the same however they are divided."""
        # In float32 whatever the default: the same seed draws the same in any precision.
        drawn = torch.randn(self.width, generator=generator, dtype=torch.float32)
        if self.shard is not None:
            drawn = drawn[self.shard.start : self.shard.start + self.rows.shape[-1]]
        return drawn.to(self.rows)

    @cached_property
    def gram(self) -> torch.Tensor:
        """Inner products (..., m, m), accumulated in float64."""
        return self._accumulate(diagonal_only=False)

    @cached_property
    def squared_norms(self) -> torch.Tensor:
        """The Gram matrix's diagonal (..., m), without the rest of it where that is not needed."""
        if "gram" in self.__dict__:
            return self.gram.diagonal(dim1=-2, dim2=-1)
        return self._accumulate(diagonal_only=True)

    def _accumulate(self, *, diagonal_only: bool) -> torch.Tensor:
        flat = self.rows.reshape(-1, *self.rows.shape[-2:])
        product = torch.stack([_gram(rows, diagonal_only) for rows in flat])
        product = self.total(product.reshape(*self.rows.shape[:-2], *product.shape[1:]))
        if not self.trusted and not bool(torch.isfinite(product).all()):
            raise NonFiniteRows
        return product

    @cached_property
    def spread(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and deviation of the rows (m, d), as :func:`coordinate_spread` has them."""
        return coordinate_spread(self.rows)

    @cached_property
    def first_copies(self) -> list[int]:
        """For each row of (m, d) the first row equal to it: attackers often send one vector."""
        squares = self.squared_norms.tolist()
        first: list[int] = []
        for j, square in enumerate(squares):
            # Norms are told apart up to rounding, which may differ between copies.
            same = (
                i for i in range(j) if first[i] == i and abs(squares[i] - square) <= 1e-12 * square
            )
            first.append(next((i for i in same if self._equal(i, j)), j))
        return first

    def _equal(self, i: int, j: int) -> bool:
        here = torch.equal(self.rows[i], self.rows[j])
        return here if self.shard is None else not self.shard.sum(torch.tensor(float(not here)))

    def combine(self, weights: torch.Tensor) -> torch.Tensor:
        """The combinations ``weights`` (..., m) of the rows: (..., d) in the rows' own dtype."""
        w = weights.to(self.rows)
        if w.dim() == 1 and _kernels.serves(self.rows):
            output = self.rows.new_empty(self.rows.shape[1])
            w = w.contiguous()
            self.agree(not _kernels.call("combine", self.rows, w, output))
            return output
        if self.rows.dim() == 2 and w.dim() > 1:
            output = w @ self.rows
        else:
            output = (w.unsqueeze(-2) @ self.rows).squeeze(-2)
        return self.check(output)

    def check(self, output: torch.Tensor) -> torch.Tensor:
        """``output``, in which every row took part, unless it shows that a row is not finite.

        A sum is the cheapest look at all entries. It may overflow where none of them does: that
        costs a second pass, and nothing else.
        """
        if not self.trusted:
            self.agree(math.isfinite(output.sum().item()))
        return output

    @cached_property
    def non_finite(self) -> torch.Tensor:
        """Which rows (..., m) were not finite and are zeros here."""
        return torch.zeros(self.rows.shape[:-1], dtype=torch.bool)

    def is_finite(self) -> bool:
        """Whether every row is; nothing is computed where some norm or product is known already."""
        try:
            return bool(torch.isfinite(self.squared_norms).all())
        except NonFiniteRows:
            return False

    def sanitised(self) -> "Basis":
        """This basis with zeros for its non-finite rows."""
        bad = ~torch.isfinite(self.total(self.rows.double().square().sum(-1)))
        rows = torch.where(bad.unsqueeze(-1), torch.zeros_like(self.rows), self.rows)
        clean = self.like(rows, trusted=True)
        clean.non_finite = bad.cpu()
        return clean

    def squared_lengths(self, weights: torch.Tensor, batch: int) -> torch.Tensor:
        """‖weights @ rows‖² (P,) with every coordinate formed in float64: exact, and slow."""
        rows = self.rows.reshape(-1, *self.rows.shape[-2:])[batch]
        total = torch.zeros(weights.shape[0], dtype=torch.float64, device=rows.device)
        w = weights.to(rows.device)
        width = max(256, (1 << 20) // (weights.shape[0] + rows.shape[0]))
        for block in rows.split(width, dim=1):
            total += (w @ block.double()).square().sum(1)
        return self.total(total.cpu())


def _gram(rows: torch.Tensor, diagonal_only: bool) -> torch.Tensor:
    m, _d = rows.shape
    shape = (m,) if diagonal_only else (m, m)
    if _kernels.serves(rows):
        out = torch.empty(shape, dtype=torch.float64)
        _kernels.call("squares" if diagonal_only else "gram", rows, out)
        return out
    out = torch.zeros(shape, dtype=torch.float64, device=rows.device)
    for block in rows.split(max(256, (1 << 20) // m), dim=1):
        wide = block.double()
        out += wide.square().sum(1) if diagonal_only else wide @ wide.mT
    return out.cpu()


def draw_columns(
    basis: Basis, mean: torch.Tensor, deviation: torch.Tensor, even: float, count: int
) -> torch.Tensor | None:
    """``count`` columns (m, count) drawn by ``mean`` and ``deviation``; None where not compiled.

    See ``sample_columns`` of the attacks, which is the same in torch.
    """
    if basis.shard is not None or not _kernels.serves(basis.rows):
        return None
    drawn = basis.rows.new_empty(basis.size, count)
    basis.agree(
        not _kernels.call(
            "sample", basis.rows, mean.contiguous(), deviation.contiguous(), even, count, drawn
        )
    )
    return drawn


def coordinate_spread(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Coordinate-wise mean and standard deviation (ddof 1; zero for one row) of (m, d) rows."""
    if rows.shape[0] == 1:
        return rows[0].clone(), torch.zeros_like(rows[0])
    if _kernels.serves(rows):
        mean, deviation = rows.new_empty(rows.shape[1]), rows.new_empty(rows.shape[1])
        _kernels.call("spread", rows, mean, deviation)
    else:
        deviation, mean = torch.std_mean(rows, dim=0)
    if not math.isfinite(deviation.sum().item()):
        # The squares of finite numbers may overflow where their spread does not.
        most = torch.finfo(rows.dtype).max
        wide = torch.std_mean(rows.double(), dim=0)
        deviation, mean = (x.clamp(-most, most).to(rows.dtype) for x in wide)
    return mean, deviation
