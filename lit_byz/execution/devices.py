"""The processes of a run on several devices: this one is the first, and starts the others.

They train alongside, step by step, and track nothing. What ends the run is decided here.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz._imports import allow_named
from lit_byz.errors import RunFailed
from lit_byz.execution.surroundings import HOST, environment, free_ports

if TYPE_CHECKING:
    from lightning.pytorch.strategies import Strategy

# How long one that has broken off may take to say so, in seconds.
GRACE = 1.0
# How long the others may take to leave once the run has ended, in seconds.
PATIENCE = 30


@contextlib.contextmanager
def several_devices(
    plain: Mapping[str, Any], resumed: Path | None, stop_at: tuple[float | None, str]
) -> Iterator["Strategy | str"]:
    """The trainer's strategy, with the other processes of the run beside this one.

    ``plain`` are the run's settings, ``resumed`` the checkpoint that it goes on from, ``stop_at``
    the accuracy above which it may end, and on which images.
    """
    count = plain["trainer"]["devices"]
    if count == 1:
        yield "auto"
        return
    import torch
    import torch.distributed as dist

    from lit_byz.training import ShardedWorkers

    allow_named(dict(plain))  # what has been imported here, the others may import
    threads = torch.get_num_threads()
    place = {"MASTER_ADDR": HOST, "MASTER_PORT": str(free_ports(1)[0])}
    job = json.dumps(
        {
            "config": dict(plain),
            "resumed": None if resumed is None else str(resumed),
            "stop_at": list(stop_at),
            "threads": max(1, threads // count),
        }
    )
    others: list[_Other] = []
    with environment({**place, "LOCAL_RANK": "0"}, "WORLD_SIZE"):
        try:
            others += [_Other(place, rank, job) for rank in range(1, count)]
            torch.set_num_threads(max(1, threads // count))
            yield ShardedWorkers()
        except BaseException as error:
            complaints = [said for other in others if (said := other.complaint())]
            for other in others:
                other.process.kill()
            if complaints and isinstance(error, RuntimeError):
                raise RunFailed(complaints[0]) from error
            raise
        finally:
            torch.set_num_threads(threads)
            if dist.is_initialized():
                dist.destroy_process_group()
            for other in others:
                other.leave()


class _Other:
    """Another process of the run."""

    def __init__(self, place: Mapping[str, str], rank: int, job: str) -> None:
        environment = {**os.environ, **place, "LOCAL_RANK": str(rank)}
        # Where the user's own classes lie, this process knows.
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self.rank = rank
        self.said = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed when it leaves
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lit_byz.execution.other_device"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=self.said,
            stderr=self.said,
            text=True,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(job)
        self.process.stdin.close()

    def complaint(self) -> str | None:
        """Why it ended before the run did, if it has."""
        try:
            code = self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return None
        self.said.seek(0)
        last = [line.strip() for line in self.said if line.strip()][-1:]
        told = f": {last[0][:300]}" if last else ""
        return f"process {self.rank + 1} of the run ended with code {code}{told}"

    def leave(self) -> None:
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.said.close()
