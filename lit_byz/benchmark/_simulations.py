"""One step of training on the same data: plain torch's gradients, and this library's whole step."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor, nn

from lit_byz._streams import Stream, numpy_generator
from lit_byz.attacks import ATTACKS, Attack
from lit_byz.benchmark._timing import Timings
from lit_byz.data import ImageData, RawImages, WorkerBatches
from lit_byz.models import MODELS, initialise
from lit_byz.robust import ARC, CWTM, NNM, RobustAggregator, Rule
from lit_byz.training import RobustDSGD, TrainSettings, WorkerData


@dataclass(frozen=True)
class Problem:
    """What a model is trained on: images of a shape, so many of them in each worker's batch."""

    shape: tuple[int, int, int]
    batch_size: int


MODEL = "cnn_mnist"  # of the same name and shape in ByzFL
PROBLEMS = {
    MODEL: Problem((1, 28, 28), 25),
    "mlp": Problem((1, 28, 28), 25),
    "cnn_cifar": Problem((3, 32, 32), 50),
    "resnet18": Problem((3, 32, 32), 16),
}
CLASSES = 10
POINTS = 200  # of each worker
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.1, 0.9, 1e-4
# A way of computing the floor that takes so many times as long as the fastest is given up.
HOPELESS = 1.3

Step = Callable[[], object]


def synthetic_batches(workers: int, model: str = MODEL) -> WorkerBatches:
    """Noise in the shape of a model's images, one or a few labels per worker."""
    problem = PROBLEMS[model]
    rng = numpy_generator(workers, Stream.BENCHMARKS)
    images = rng.integers(0, 256, (workers * POINTS, *problem.shape), dtype=np.uint8)
    labels = np.sort(rng.integers(0, CLASSES, workers * POINTS))
    labels[:CLASSES] = np.arange(CLASSES)  # all of them, however few workers there are
    raw = RawImages(images, labels, images[:100], labels[:100])
    channels = problem.shape[0]
    data = ImageData(raw, mean=(0.1307,) * channels, std=(0.3081,) * channels)
    parts = np.array_split(np.arange(len(labels)), workers)
    return WorkerBatches(data, parts, problem.batch_size, seed=0)


def new_model(model: str) -> nn.Module:
    """A registered model for its problem's images, always with the same parameters."""
    shape = PROBLEMS[model].shape
    return initialise(lambda: MODELS[model](shape=shape, classes=CLASSES), seed=0)


def loss_of(model: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss that suits what a model returns."""
    logs = getattr(model, "output", "logits") == "log_probabilities"
    return nn.functional.nll_loss if logs else nn.functional.cross_entropy


def floors(batches: WorkerBatches, model: str = MODEL) -> dict[str, Step]:
    """Forward and backward in plain torch: joined or worker by worker, in either memory layout."""
    x, y = batches.round(0)
    found: dict[str, Step] = {}
    for layout in (torch.contiguous_format, torch.channels_last):
        made = new_model(model).to(memory_format=layout)  # type: ignore[call-overload]
        workers = [part.contiguous(memory_format=layout) for part in x]
        joined = x.flatten(0, 1).contiguous(memory_format=layout)
        name = str(layout).removeprefix("torch.")
        found[f"joined, {name}"] = _passes(made, [joined], [y.flatten()])
        found[f"loop, {name}"] = _passes(made, workers, list(y))
    return found


def _passes(model: nn.Module, images: list[Tensor], labels: list[Tensor]) -> Step:
    loss = loss_of(model)

    def step() -> None:
        for x, y in zip(images, labels, strict=True):
            model.zero_grad(set_to_none=True)
            loss(model(x), y).backward()

    return step


def our_module(
    batches: WorkerBatches,
    attack: str | Attack,
    f: int,
    steps: int,
    rule: Rule | None = None,
    model: str = MODEL,
) -> RobustDSGD:
    """A module that trains on these batches under this attack; the rule is CWTM unless given."""
    return RobustDSGD(
        new_model(model),
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
    first turn of all warms up and does not count; functions in ``cold``, which take so long that it
    would not matter, do without. A function that has taken ``budget`` seconds is left out, after
    two turns that count; so are ``rivals`` that are clearly slower than the fastest of them.
    """

    def __init__(
        self,
        others: Mapping[str, Step],
        budget: float,
        rivals: Collection[str] = (),
        cold: Collection[str] = (),
    ) -> None:
        self.others = others
        self.budget = budget
        self.rivals = rivals
        self.cold = cold
        self.seconds: dict[str, list[float]] = {name: [] for name in ("ours", *others)}
        self._turn = 0
        self._begin = 0.0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin = time.perf_counter()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        taken = {"ours": time.perf_counter() - self._begin}
        for name, function in self.others.items():
            if name not in self.cold if self._turn == 0 else self._goes_on(name):
                start = time.perf_counter()
                function()
                taken[name] = time.perf_counter() - start
        if self._turn > 0:
            for name, seconds in taken.items():
                self.seconds[name].append(seconds)
        self._turn += 1
        self._begin = time.perf_counter()

    def _goes_on(self, name: str) -> bool:
        own = self.seconds[name]
        if len(own) < 2:
            return True
        fastest = min(min(self.seconds[rival]) for rival in self.rivals or [name])
        hopeless = name in self.rivals and min(own) > HOPELESS * fastest
        left_out = len(own) < self._turn - 1  # once left out, always: turns stay side by side
        return sum(own) < self.budget and not hopeless and not left_out


def take_turns_training(
    module: RobustDSGD,
    others: Mapping[str, Step],
    budget: float,
    *,
    rivals: Collection[str] = (),
    cold: Collection[str] = (),
) -> Timings:
    """Seconds of each of our steps, as ``ours``, and of the others, by name: see :class:`Turns`."""
    from lit_byz.execution.assemble import quiet_lightning

    turns = Turns(others, budget, rivals, cold)
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
    return Timings(turns.seconds)
