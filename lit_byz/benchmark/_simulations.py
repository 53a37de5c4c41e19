"""One step of training, three ways on the same data: plain torch, this library, ByzFL."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from lit_byz._streams import Stream, numpy_generator
from lit_byz.attacks import ATTACKS, Attack
from lit_byz.data import ImageData, RawImages, WorkerBatches
from lit_byz.models import MODELS, initialise
from lit_byz.robust import ARC, CWTM, NNM, RobustAggregator, Rule
from lit_byz.training import RobustDSGD, TrainSettings, WorkerData

MODEL = "cnn_mnist"  # of the same name and shape in both libraries
CLASSES = 10
BATCH_SIZE = 25
POINTS = 200  # of each worker
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.1, 0.9, 1e-4

# Our attacks, and theirs with the paper's 20 evaluations where they search.
BYZFL_ATTACKS: dict[str, tuple[str, dict[str, Any]]] = {
    "sf": ("SignFlipping", {}),
    "lf": ("LabelFlipping", {}),
    "mimic": ("Mimic", {}),
    "foe": ("Optimal_InnerProductManipulation", {"evals": 20}),
    "alie": ("Optimal_ALittleIsEnough", {"evals": 20}),
}
SEARCHED = ("foe", "alie")

Step = Callable[[], object]


def synthetic_batches(workers: int) -> WorkerBatches:
    """Noise in the shape of MNIST, one or a few labels per worker."""
    rng = numpy_generator(workers, Stream.BENCHMARKS)
    images = rng.integers(0, 256, (workers * POINTS, 1, 28, 28), dtype=np.uint8)
    labels = np.sort(rng.integers(0, CLASSES, workers * POINTS))
    labels[:CLASSES] = np.arange(CLASSES)  # all of them, however few workers there are
    raw = RawImages(images, labels, images[:100], labels[:100])
    data = ImageData(raw, mean=(0.1307,), std=(0.3081,))
    parts = np.array_split(np.arange(len(labels)), workers)
    return WorkerBatches(data, parts, BATCH_SIZE, seed=0)


def floors(batches: WorkerBatches) -> dict[str, Step]:
    """Forward and backward in plain torch: joined or worker by worker, in either memory layout."""
    x, y = batches.round(0)
    found: dict[str, Step] = {}
    for layout in (torch.contiguous_format, torch.channels_last):
        model = initialise(MODELS[MODEL], seed=0).to(memory_format=layout)  # type: ignore[call-overload]
        workers = [part.contiguous(memory_format=layout) for part in x]
        joined = x.flatten(0, 1).contiguous(memory_format=layout)
        name = str(layout).removeprefix("torch.")
        found[f"joined, {name}"] = _passes(model, [joined], [y.flatten()])
        found[f"loop, {name}"] = _passes(model, workers, list(y))
    return found


def _passes(model: nn.Module, images: list[Tensor], labels: list[Tensor]) -> Step:
    def step() -> None:
        for x, y in zip(images, labels, strict=True):
            model.zero_grad(set_to_none=True)
            nn.functional.nll_loss(model(x), y).backward()

    return step


def our_module(
    batches: WorkerBatches, attack: str | Attack, f: int, steps: int, rule: Rule | None = None
) -> RobustDSGD:
    """A module that trains on these batches under this attack; the rule is CWTM unless given."""
    return RobustDSGD(
        initialise(MODELS[MODEL], seed=0),
        RobustAggregator(rule or CWTM(f), clip=ARC(f), mix=NNM(f)),
        ATTACKS[attack]() if isinstance(attack, str) else attack,
        f=f,
        settings=TrainSettings(
            steps=steps, lr=LEARNING_RATE, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY
        ),
        data=WorkerData.of(batches),
    )


class Turns(Callback):
    """Times the steps of a real training run, and after each of them other functions, once each.

    A step is everything from one batch's end to the next one's, Lightning's own loop included. The
    first turn of all warms up and does not count. A function that has taken ``budget`` seconds is
    left out, after two turns at least.
    """

    def __init__(self, others: Mapping[str, Step], budget: float) -> None:
        self.others = others
        self.budget = budget
        self.ours: list[float] = []
        self.seconds: dict[str, list[float]] = {name: [] for name in others}
        self._begin = 0.0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin = time.perf_counter()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        self.ours.append(time.perf_counter() - self._begin)
        for name, function in self.others.items():
            taken = self.seconds[name]
            if len(taken) < 2 or sum(taken) < self.budget:
                start = time.perf_counter()
                function()
                taken.append(time.perf_counter() - start)
        self._begin = time.perf_counter()


def take_turns_training(
    module: RobustDSGD, others: Mapping[str, Step], budget: float
) -> dict[str, list[float]]:
    """Seconds of each of our steps, as ``ours``, and of the others, by name."""
    from lit_byz.execution.assemble import quiet_lightning

    turns = Turns(others, budget)
    with quiet_lightning():
        trainer = lightning.Trainer(
            max_steps=module.settings.steps,
            accelerator="cpu",
            logger=False,
            limit_val_batches=0,
            callbacks=[turns],
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(module)
    timed = {"ours": turns.ours, **turns.seconds}
    return {name: seconds[1:] for name, seconds in timed.items()}


def byzfl_step(byzfl: Any, batches: WorkerBatches, attack: str, f: int) -> Step:
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
            "aggregator_info": {"name": "TrMean", "parameters": {"f": f}},
            "pre_agg_list": before,
        }

    server = byzfl.Server({**shared, **defence(), "test_loader": loaders[0]})
    name, settings = BYZFL_ATTACKS[attack]
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
    return DataLoader(TensorDataset(x, y), batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
