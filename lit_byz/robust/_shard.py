"""Vectors of which a process holds only some columns."""

from typing import Protocol

import torch


class Shard(Protocol):
    """Which columns of the vectors are here, and what there is to hear of the others.

    Every process that holds a shard calls the same methods in the same order, and all get the same
    answers, bit for bit.
    """

    @property
    def place(self) -> int:
        """Where this shard stands among all."""
        ...

    @property
    def start(self) -> int:
        """The first of the columns that are here."""
        ...

    @property
    def total(self) -> int:
        """How many columns the vectors have."""
        ...

    def sum(self, part: torch.Tensor) -> torch.Tensor:
        """The sum over all shards of a small tensor, in float64 on the CPU."""
        ...

    def each(self, part: torch.Tensor) -> torch.Tensor:
        """The same small tensor (k,) of every shard, in the shards' order: (shards, k)."""
        ...

    def join(self, columns: torch.Tensor) -> torch.Tensor:
        """The columns (..., k) of all shards side by side; k may differ between them."""
        ...
