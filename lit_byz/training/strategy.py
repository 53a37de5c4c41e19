"""Lightning's several devices for one run: its processes and messages, without its gradients."""

import atexit

import torch.distributed as dist
from lightning.pytorch.strategies import DDPStrategy


class ShardedWorkers(DDPStrategy):
    """Divides the honest workers of a :class:`~lit_byz.training.RobustDSGD` among processes.

    ``Trainer(devices=4, strategy=ShardedWorkers())`` starts its processes as Lightning's ``ddp``
    does, or takes those that ``torchrun`` or Slurm has started. What is exchanged is what the
    server's step needs, not averaged gradients, so the module is not wrapped.
    """

    def setup_environment(self) -> None:
        """Join the others, and leave them before Python ends.

        Lightning does so for ``nccl`` alone; threads of ``gloo`` that are still there abort the
        process.
        """
        super().setup_environment()
        atexit.register(_leave)

    def configure_ddp(self) -> None:
        """Leave the module as it is."""


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
