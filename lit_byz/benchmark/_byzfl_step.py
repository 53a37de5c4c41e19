"""One step of training in ByzFL, as its own loop makes it."""

from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from lit_byz.benchmark._simulations import (
    CLASSES,
    LEARNING_RATE,
    MODEL,
    MOMENTUM,
    WEIGHT_DECAY,
    Step,
)
from lit_byz.data import WorkerBatches

# Our attacks, and theirs with the paper's 20 evaluations where they search.
ATTACKS: dict[str, tuple[str, dict[str, Any]]] = {
    "sf": ("SignFlipping", {}),
    "lf": ("LabelFlipping", {}),
    "mimic": ("Mimic", {}),
    "foe": ("Optimal_InnerProductManipulation", {"evals": 20}),
    "alie": ("Optimal_ALittleIsEnough", {"evals": 20}),
}
# Each takes of its parameters what it knows; those of GM are ours by default.
RULES = {"cwtm": "TrMean", "gm": "GeometricMedian", "multi_krum": "MultiKrum"}


def byzfl_step(byzfl: Any, batches: WorkerBatches, attack: str, f: int, rule: str = "cwtm") -> Step:
    """A step of ByzFL's clients and server, as its own training loop makes it."""
    shared = {
        "model_name": MODEL,
        "device": "cpu",
        "optimizer_name": "SGD",
        "learning_rate": LEARNING_RATE,
        "weight_decay": WEIGHT_DECAY,
        "milestones": [],
        "learning_rate_decay": 1.0,
    }
    flipping = attack == "lf"
    loaders = [_loader(batches, worker) for worker in range(batches.workers)]
    clients = [
        byzfl.Client(
            {
                **shared,
                "loss_name": "NLLLoss",
                "LabelFlipping": flipping,
                "training_dataloader": loader,
                "momentum": MOMENTUM,
                "nb_labels": CLASSES,
                "store_per_client_metrics": False,
            }
        )
        for loader in loaders
    ]

    def defence() -> dict[str, Any]:
        before = [{"name": name, "parameters": {"f": f}} for name in ("ARC", "NNM")]
        return {
            "aggregator_info": {"name": RULES[rule], "parameters": {"f": f}},
            "pre_agg_list": before,
        }

    server = byzfl.Server({**shared, **defence(), "test_loader": loaders[0]})
    name, settings = ATTACKS[attack]
    attacker = byzfl.ByzantineClient(
        {"name": name, "f": f, "parameters": {**settings, **defence(), "f": f}}
    )

    def step() -> None:
        for client in clients:
            client.compute_gradients()
        honest = [client.get_flat_gradients_with_momentum() for client in clients]
        seen = [client.get_flat_flipped_gradients() for client in clients] if flipping else honest
        server.update_model_with_gradients(honest + attacker.apply_attack(seen))
        parameters = server.get_dict_parameters()
        for client in clients:
            client.set_model_state(parameters)

    step_zero = server.get_dict_parameters()
    for client in clients:
        client.set_model_state(step_zero)
    return step


def _loader(batches: WorkerBatches, worker: int) -> "DataLoader[Any]":
    x, y = batches.images.train_batch(torch.from_numpy(batches.parts[worker]))
    return DataLoader(TensorDataset(x, y), batches.batch_size, shuffle=True, drop_last=True)
