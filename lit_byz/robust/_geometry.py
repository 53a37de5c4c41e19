"""Vectors as small matrices: coefficients over a basis, seen through inner products.

Every vector that the server meets is a row of C·B: B (m, d) are the vectors that exist, C (n, m)
says how each row is made of them. One Gram matrix of B in float64 gives all norms and distances,
so clipping, mixing and most rules never look at a coordinate. C and everything derived from the
Gram matrix live on the CPU in float64; only B may be large, or on a GPU.
"""

from functools import cached_property

import torch
from torch.nn.functional import pad

from lit_byz.robust import _kernels
from lit_byz.robust._basis import Basis

# A squared distance below this share of the squared reach of its two vectors has lost too many of
# float64's digits to cancellation, and is computed again from differences.
CANCELLED = 2.0**-28
# Coefficients that differ by no more than this share are copies of each other, up to rounding.
IDENTICAL = 2.0**-46


class Geometry:
    """n vectors, each a combination of the rows of a basis."""

    def __init__(self, basis: Basis, coefficients: torch.Tensor | None = None) -> None:
        self.basis = basis
        self.coefficients = coefficients  # (..., n, m); None: the basis itself

    @property
    def n(self) -> int:
        return self.basis.size if self.coefficients is None else self.coefficients.shape[-2]

    @property
    def batch(self) -> torch.Size:
        """The dimensions in front of the vectors' own two."""
        of_basis = self.basis.rows.shape[:-2]
        if self.coefficients is None:
            return of_basis
        own = self.coefficients.shape[:-2]
        return torch.broadcast_shapes(own, of_basis) if of_basis else own

    @cached_property
    def matrix(self) -> torch.Tensor:
        """The coefficients, written out."""
        if self.coefficients is None:
            return torch.eye(self.basis.size, dtype=torch.float64)
        return self.coefficients

    def scaled(self, scale: torch.Tensor) -> "Geometry":
        """Row i multiplied by ``scale[..., i]``."""
        return Geometry(self.basis, scale.unsqueeze(-1) * self.matrix)

    def mixed(self, matrix: torch.Tensor) -> "Geometry":
        """The combinations ``matrix`` (..., rows, n) of these vectors."""
        n, rows, m = self.n, matrix.shape[-2], self.basis.size
        own = self.matrix.reshape(-1, m)
        if matrix.shape[:-2] != self.matrix.shape[:-2] or not _kernels.serves(own):
            return Geometry(self.basis, matrix @ self.matrix)
        mixed = torch.empty(*matrix.shape[:-2], rows, m, dtype=torch.float64)
        _kernels.call("mixed", own.contiguous(), n, matrix.contiguous(), rows, mixed, effort=4)
        return Geometry(self.basis, mixed)

    @cached_property
    def norms(self) -> torch.Tensor:
        """Euclidean norms (..., n)."""
        if self.coefficients is None:
            return self.basis.squared_norms.sqrt()
        return self.squared_distances[..., -1, :-1].sqrt()

    @cached_property
    def _with_origin(self) -> torch.Tensor:
        return pad(self.matrix, (0, 0, 0, 1))

    @property
    def inner_products(self) -> torch.Tensor:
        """Inner products (..., n + 1, n + 1), zero for the origin, which comes last."""
        return self._measured[0]

    @property
    def squared_distances(self) -> torch.Tensor:
        """‖x_i − x_j‖² (..., n + 1, n + 1); the last row and column stand for the origin."""
        return self._measured[1]

    @cached_property
    def _measured(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Inner products and squared distances."""
        small = self.matrix.reshape(-1, self.basis.size)
        compiled = self.basis.rows.dim() == 2 and _kernels.serves(small)
        inner, distances, doubtful = self._compiled(small) if compiled else self._plain()
        if doubtful is not None:
            self._repair(distances, doubtful)
        return inner, distances

    def _compiled(
        self, small: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        gram = self.basis.gram.contiguous()
        shape = (*self.matrix.shape[:-2], self.n + 1, self.n + 1)
        inner, distances = (torch.empty(shape, dtype=torch.float64) for _ in range(2))
        doubtful = torch.empty(shape, dtype=torch.bool)
        found = _kernels.call(
            "distances",
            small.contiguous(),
            self.n,
            gram,
            CANCELLED,
            IDENTICAL,
            inner,
            distances,
            doubtful,
            effort=self.n,
        )
        return inner, distances, doubtful if found else None

    def _plain(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        c, gram = self._with_origin, self.basis.gram
        inner = c @ gram @ c.mT
        squares = inner.diagonal(dim1=-2, dim2=-1)
        distances = (squares.unsqueeze(-1) + squares.unsqueeze(-2) - 2 * inner).clamp_(min=0)
        reach = (c.abs() @ self._lengths.unsqueeze(-1)).squeeze(-1)
        doubtful = distances < CANCELLED * (reach.unsqueeze(-1) + reach.unsqueeze(-2)).square()
        doubtful = doubtful.triu(diagonal=1)
        distances.diagonal(dim1=-2, dim2=-1).zero_()
        return inner, distances, doubtful if bool(doubtful.any()) else None

    @property
    def _lengths(self) -> torch.Tensor:
        """The norms (..., m) of the basis."""
        return self.basis.gram.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()

    def _repair(self, distances: torch.Tensor, doubtful: torch.Tensor) -> None:
        """Replace the ``doubtful`` squared distances by ones computed from differences."""
        c, lengths = self._with_origin, self._lengths
        size, m = distances.shape[-1], c.shape[-1]
        flat = distances.reshape(-1, size, size)
        rows = c.expand(*distances.shape[:-2], size, m).reshape(-1, size, m)
        lengths = lengths.expand(*distances.shape[:-2], m).reshape(-1, m)
        if self.basis.rows.dim() == 2:
            # A copy is written as the vector it copies.
            rows = rows @ torch.eye(m, dtype=torch.float64)[self.basis.first_copies]
        item, i, j = doubtful.reshape(-1, size, size).nonzero(as_tuple=True)
        differences = rows[item, i] - rows[item, j]
        reach = (rows[item, i].abs() * lengths[item]).sum(1)
        # Copies of one vector differ by rounding at most, and need no pass to say so.
        apart = (differences.abs() * lengths[item]).sum(1) > IDENTICAL * reach
        exact = torch.zeros(len(item), dtype=torch.float64)
        batched = self.basis.rows.dim() > 2
        for batch in range(flat.shape[0]) if batched else [0]:
            chosen = apart & (item == batch) if batched else apart
            if bool(chosen.any()):
                distinct, place = differences[chosen].unique(dim=0, return_inverse=True)
                exact[chosen] = self.basis.squared_lengths(distinct, batch)[place]
        flat[item, i, j] = exact
        flat[item, j, i] = exact

    def combine(self, weights: torch.Tensor) -> torch.Tensor:
        """The combinations ``weights`` (..., n) of these vectors: (..., d)."""
        if self.coefficients is None:
            return self.basis.combine(weights)
        return self.basis.combine((weights.unsqueeze(-2) @ self.matrix).squeeze(-2))

    def rows(self) -> torch.Tensor:
        """The vectors themselves (..., n, d): the one place that forms them."""
        if self.coefficients is None:
            return self.basis.rows
        return self.basis.over_rows(self.matrix).to(self.basis.rows) @ self.basis.rows

    def combination_norms(self, coefficients: torch.Tensor) -> torch.Tensor:
        """‖coefficients @ basis‖ for coefficients (..., m) over the basis."""
        image = (coefficients.unsqueeze(-2) @ self.basis.gram).squeeze(-2)
        return (image * coefficients).sum(-1).clamp(min=0).sqrt()
