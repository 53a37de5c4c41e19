"""The server's step of a run whose workers are divided among processes."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lit_byz.attacks import Attack, State
from lit_byz.robust import Basis, RobustAggregator
from lit_byz.training._sharding import Sharding, divides


@dataclass
class Divided:
    """What one process sees of all honest vectors: some columns, or where need be everything.

    ``columns`` (h + 1, ·) holds them; the last row is the attackers' to write to.
    """

    sharding: Sharding
    columns: Tensor
    whole: bool

    @classmethod
    def among_processes(
        cls, workers: int, server: RobustAggregator, attack: Attack, vectors: Tensor
    ) -> "Divided | None":
        """This process's share; None where there is but one. ``vectors`` (·, d) are like theirs."""
        if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
            return None
        sharding = Sharding(dist.get_rank(), dist.get_world_size(), workers, vectors.shape[1])
        whole = not divides(server, attack)
        here = slice(0, sharding.total) if whole else sharding.columns
        return cls(sharding, vectors.new_zeros(workers + 1, here.stop - here.start), whole)

    def receive(self, own: Tensor, flipped: Tensor | None) -> tuple[Basis, Tensor | None]:
        """All honest vectors from the own workers' (own, d).

        ``flipped`` is the own workers' mean gradient on flipped labels; all workers' is returned.
        """
        sharding = self.sharding
        if flipped is not None:
            flipped = flipped * (len(own) / sharding.workers)
        if not self.whole:
            sharding.deal(own, self.columns[:-1])
            mean = None if flipped is None else sharding.deal_sum(flipped)
            return self.basis(), mean
        self.columns[:-1] = sharding.gather_rows(own)
        if flipped is not None:
            flipped = sharding.join_output(sharding.deal_sum(flipped))
        return self.basis(), flipped

    def basis(self) -> Basis:
        """The honest vectors of the last step."""
        return Basis(self.columns[:-1], shard=None if self.whole else self.sharding)

    def output(self, found: Tensor) -> Tensor:
        """The server's whole output (d,) from what was found here."""
        return found if self.whole else self.sharding.join_output(found)

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all honest workers of ``values``, a row for each that is here."""
        total: Tensor = self.sharding.sum(values.sum(0))
        return (total / self.sharding.workers).to(values)

    def save(self, checkpoint: dict[str, Any], attack: Attack, own: Tensor) -> None:
        """Put what a run on one process would keep into a checkpoint."""
        rows = self.sharding.gather_rows(own)
        empty = rows.new_zeros(1, rows.shape[1])
        checkpoint["state_dict"]["momentums"] = torch.cat([rows, empty])
        if not self.whole:
            state = checkpoint["robust_dsgd"]["attack_state"]
            for name in sorted(attack.column_state & state.keys()):
                state[name] = self.sharding.join(state[name])

    def load(self, checkpoint: dict[str, Any], attack: Attack, state: State) -> None:
        """Take this process's share of a checkpoint and of the attack's ``state`` in it."""
        rows = checkpoint["state_dict"]["momentums"]
        own = rows[:-1][self.sharding.own]
        checkpoint["state_dict"]["momentums"] = torch.cat([own, torch.zeros_like(rows[:1])])
        if not self.whole:
            for name in attack.column_state & state.keys():
                state[name] = state[name][..., self.sharding.columns].clone()
