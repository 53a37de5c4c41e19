"""Peak memory beyond what a process has before it meets any vectors, each in a new process."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lit_byz.errors import RunFailed

COMMAND = "import sys; from lit_byz.benchmark._memory import main; main(sys.argv[1:])"
KINDS = ("server", "foe", "training")


@dataclass(frozen=True)
class MemoryPoint:
    """Bytes. A ``server`` aggregates once, ``foe`` is searched and served, ``training`` steps."""

    kind: str
    n: int
    f: int
    d: int
    base: int
    """Of the process with everything imported and used once on a small matrix."""
    beyond: int
    """How much more it had at its peak, the vectors themselves included."""
    over_matrix: float
    """As a multiple of the n × d matrix."""


def measure_memory(kind: str, n: int, f: int, d: int) -> MemoryPoint:
    """One point, in a process of its own."""
    path = os.pathsep.join(str(Path(place).resolve()) for place in sys.path if place)
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, kind, str(n), str(f), str(d)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RunFailed(f"memory of {kind} at n={n}, d={d}: {done.stderr[-300:]}")
    base, peak = json.loads(done.stdout.splitlines()[-1])
    return MemoryPoint(kind, n, f, d, base, peak - base, (peak - base) / (4 * n * d))


def main(arguments: list[str]) -> None:
    """In that process: everything once on little, then once on what is asked for."""
    kind, (n, f, d) = arguments[0], map(int, arguments[1:])
    work = {"server": _serve, "foe": _search, "training": _train}[kind]
    work(4, 1, 1000)
    base = _resident("VmRSS")
    _forget_peak()
    work(n, f, d)
    sys.stdout.write(json.dumps([base, _resident("VmHWM")]) + "\n")


def _resident(key: str) -> int:
    """A line of /proc/self/status, in bytes."""
    found = re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def _forget_peak() -> None:
    """Have the system count the peak from here on: imports had one of their own."""
    Path("/proc/self/clear_refs").write_text("5")


def _serve(n: int, f: int, d: int) -> None:
    import torch

    from lit_byz.benchmark._byzfl import our_server

    our_server("cwtm", f, arc=True, nnm=True)(torch.randn(n, d))


def _search(n: int, f: int, d: int) -> None:
    import torch

    from lit_byz.attacks import FOE, Scene
    from lit_byz.benchmark._byzfl import our_server
    from lit_byz.robust import Basis

    buffer = torch.randn(n - f + 1, d).add_(0.1)
    server = our_server("cwtm", f, arc=True, nnm=True)
    scene = Scene(Basis(buffer[:-1]), f, server, buffer=buffer)
    move = FOE().act(scene, {})
    server.output_and_damage(server.prepare(move.received(scene, move.basis), 0), scene.mean)


def _train(n: int, f: int, d: int) -> None:
    """Steps of the paper's MNIST model, whose d it is; on little, a few images."""
    from lit_byz.benchmark import _simulations

    problem = _simulations.PROBLEMS[_simulations.MODEL]
    small = _simulations.Problem(problem.shape, 2)
    _simulations.PROBLEMS[_simulations.MODEL] = small if d <= 1000 else problem
    batches = _simulations.synthetic_batches(n - f)
    _simulations.PROBLEMS[_simulations.MODEL] = problem
    module = _simulations.our_module(batches, "foe", f, steps=3)
    _simulations.take_turns_training(module, {}, 1.0)
