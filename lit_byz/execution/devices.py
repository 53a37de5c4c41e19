"""The processes of a run on several devices: this one is the first, and starts the others.

They train alongside, step by step, and track nothing. What ends the run is decided here.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightning.pytorch.strategies import Strategy

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

    threads = torch.get_num_threads()
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    job = json.dumps(
        {
            "config": dict(plain),
            "resumed": None if resumed is None else str(resumed),
            "stop_at": list(stop_at),
            "threads": max(1, threads // count),
        }
    )
    others: list[subprocess.Popen[str]] = []
    with _environment({**place, "LOCAL_RANK": "0"}):
        try:
            others += [_start(place, rank, job) for rank in range(1, count)]
            torch.set_num_threads(max(1, threads // count))
            yield ShardedWorkers()
        except BaseException:
            for other in others:
                other.kill()
            raise
        finally:
            torch.set_num_threads(threads)
            if dist.is_initialized():
                dist.destroy_process_group()
            for other in others:
                _leave(other)


def _start(place: Mapping[str, str], rank: int, job: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, **place, "LOCAL_RANK": str(rank)}
    # Where the user's own classes lie, this process knows.
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    started = subprocess.Popen(
        [sys.executable, "-m", "lit_byz.execution.other_device"],
        env=environment,
        stdin=subprocess.PIPE,
        text=True,
    )
    assert started.stdin is not None
    started.stdin.write(job)
    started.stdin.close()
    return started


def _leave(other: "subprocess.Popen[str]") -> None:
    try:
        other.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        other.kill()
        other.wait()


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in (*values, "WORLD_SIZE")}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
