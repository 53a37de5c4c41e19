"""A basis with one more vector, which is a combination of its own."""

from functools import cached_property

import torch
from torch.nn.functional import pad

from lit_byz.robust._basis import Basis

# What is left of a coefficient after the centre's part, if it is no larger than this share of it.
ROUNDING = 2.0**-50


class Beside(Basis):
    """The vectors of ``basis`` and, last, ``centre`` (m,) of them, which is written nowhere.

    What is made of the centre then has one coefficient instead of many, and whoever works with
    coefficients has little to do. ``lengths`` (m + 1,) are the vectors' norms; they need not be
    those of the rows, where these are only some columns that speak for all.
    """

    def __init__(
        self, basis: Basis, centre: torch.Tensor, lengths: torch.Tensor | None = None
    ) -> None:
        super().__init__(basis.rows, trusted=basis.trusted, shard=basis.shard)
        self.whole, self.centre = basis, centre
        if lengths is not None:
            self.lengths = lengths

    @property
    def size(self) -> int:
        return self.whole.size + 1

    @property
    def last(self) -> torch.Tensor:
        """The coefficients (m + 1,) of the centre itself."""
        last = torch.zeros(self.size, dtype=torch.float64)
        last[-1] = 1
        return last

    @cached_property
    def lengths(self) -> torch.Tensor:
        return self.squared_norms.clamp(min=0).sqrt()

    def express(self, coefficients: torch.Tensor) -> torch.Tensor:
        """Coefficients (..., m + 1) of vectors with these (..., m), by the centre where shorter."""
        place = int(self.centre.abs().argmax())
        share = coefficients[..., place : place + 1] / self.centre[place]
        rest = coefficients - share * self.centre
        rest = rest.masked_fill(rest.abs() <= ROUNDING * coefficients.abs(), 0.0)
        fewer = rest.count_nonzero(-1) < coefficients.count_nonzero(-1)
        with_centre, alone = torch.cat([rest, share], -1), pad(coefficients, (0, 1))
        return torch.where(fewer.unsqueeze(-1), with_centre, alone)

    def over_rows(self, coefficients: torch.Tensor) -> torch.Tensor:
        return coefficients[..., :-1] + coefficients[..., -1:] * self.centre

    def seen_through(self, columns: Basis) -> "Beside":
        """The same vectors through columns that speak for all."""
        return Beside(columns, self.centre, self.lengths)

    @cached_property
    def gram(self) -> torch.Tensor:
        made_of = torch.cat([torch.eye(self.whole.size, dtype=torch.float64), self.centre[None]])
        return made_of @ self.whole.gram @ made_of.mT

    @cached_property
    def squared_norms(self) -> torch.Tensor:
        return self.gram.diagonal()

    @cached_property
    def first_copies(self) -> list[int]:
        return [*self.whole.first_copies, self.whole.size]

    def combine(self, weights: torch.Tensor) -> torch.Tensor:
        return self.whole.combine(self.over_rows(weights))

    def squared_lengths(self, weights: torch.Tensor, batch: int) -> torch.Tensor:
        return self.whole.squared_lengths(self.over_rows(weights), batch)
