"""Ratios that must not worsen: a short benchmark that a busy machine cannot fool.

One thread, everything in turns, and of every ratio the best of a few attempts: whatever else a
machine does adds to one side or to both, and rarely to every attempt.
"""

from collections.abc import Callable
from typing import Any

import torch

from lit_byz._threads import threads
from lit_byz.benchmark import _byzfl
from lit_byz.benchmark._simulations import (
    floors,
    our_module,
    synthetic_batches,
    take_turns_training,
)
from lit_byz.benchmark._timing import take_turns
from lit_byz.benchmark.robust import gradients

HONEST, F = 10, 1
ATTACKS = ("sf", "lf", "foe")
SERVER = "server / byzfl"
SERVER_SIZE = (11, 1, 100_000)
TURNS = 4


def step_ratio(attack: str) -> float:
    """Our fastest step under an attack over the fastest of plain torch's passes."""
    with threads(1):
        batches = synthetic_batches(HONEST)
        plain = floors(batches)
        module = our_module(batches, attack, F, steps=TURNS + 1)
        timed = take_turns_training(module, plain, budget=5.0, rivals=plain).seconds
        return min(timed["ours"]) / min(min(timed[name]) for name in plain)


def server_ratio(byzfl: Any) -> float:
    """Our CWTM∘NNM∘ARC over ByzFL's, the fastest of each."""
    with threads(1):
        functions: dict[str, Callable[[torch.Tensor], object]] = {
            "ours": _byzfl.our_server("cwtm", F, arc=True, nnm=True),
            "byzfl": _byzfl.their_server(byzfl, "cwtm", F, arc=True, nnm=True),
        }
        timed = take_turns(functions, gradients(*SERVER_SIZE), repeats=TURNS, budget=5.0).seconds
        return min(timed["ours"]) / min(timed["byzfl"])


def ratio(name: str) -> float:
    """One of the guarded ratios; lower is better."""
    return server_ratio(_byzfl.load()) if name == SERVER else step_ratio(name)
