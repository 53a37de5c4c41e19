"""The fixed part of a config: its sections, their keys, types, defaults and domains.

The groups (``dataset``, ``model``, ``rule``, …) are open: the constructor of the class that is
chosen is the schema of its section. See ``lit_byz.config.components``.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from lit_byz.config.fields import Domain


def _setting(default: Any, text: str, **bounds: float) -> Any:
    """A dataclass field with a line for ``--help`` and, for numbers, a domain."""
    metadata = {"text": text, "domain": Domain(**bounds) if bounds else None}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass
class Workers:
    """Who takes part: n = honest + f workers."""

    honest: int = _setting(10, "honest workers; the training data is dealt among them", at_least=1)
    f: int = _setting(1, "Byzantine workers, the real number", at_least=0)
    batch_size: int = _setting(25, "examples that an honest worker draws in a round", at_least=1)


@dataclass
class Server:
    """What the server believes and does beside clip, mix and rule."""

    f: int = _setting("${workers.f}", "Byzantine workers that the server expects", at_least=0)
    bound_output: bool = _setting(
        False, "clip the rule's output at the largest norm of its inputs (the appendix's F†)"
    )


@dataclass
class Train:
    """Robust-DSGD."""

    steps: int = _setting(1000, "rounds, the paper's T", at_least=1)
    lr: float = _setting(0.1, "learning rate of the server", above=0)
    lr_milestones: list[int] = _setting([], "steps after which it changes", at_least=1)
    lr_values: list[float] = _setting(
        [], "its value after each milestone; empty: it is multiplied by lr_decay", above=0
    )
    lr_decay: float = _setting(0.1, "factor at each milestone", above=0, at_most=1)
    momentum: float = _setting(0.9, "of each worker, the paper's β", at_least=0, below=1)
    weight_decay: float = _setting(1e-4, "factor of the ℓ2 term", at_least=0)
    weight_decay_mode: Literal["server", "worker"] = _setting(
        "server", "who adds the ℓ2 term, to its step or to each gradient"
    )
    loss: Literal["auto", "nll", "cross_entropy"] = _setting(
        "auto", "auto: nll where the model returns log-probabilities, else cross_entropy"
    )
    eval_every: int = _setting(50, "steps between evaluations on the test images", at_least=1)
    checkpoint_every: int = _setting(
        100, "steps between checkpoints; 0: only when a run is interrupted", at_least=0
    )
    full_batch: bool = _setting(False, "all points of a worker in every round (Robust-DGD)")
    local_steps: int = _setting(
        1, "more than 1: workers take that many steps and send model updates", at_least=1
    )
    local_lr: float = _setting("${train.lr}", "learning rate of local steps", above=0)
    gradients: Literal["auto", "vmap", "joined", "loop"] = _setting(
        "auto", "how per-worker gradients are computed; auto follows from model and device"
    )
    output: Literal["last", "random_iterate"] = _setting(
        "last", "which parameters a run returns and keeps as final; random_iterate: the paper's θ̂"
    )


@dataclass
class Data:
    """Where images come from."""

    root: str | None = _setting(
        None, "folder of the data sets; null: LIT_BYZ_DATA or a user cache folder"
    )
    test_batch_size: int = _setting(250, "test images evaluated at once", at_least=1)
    validation: float = _setting(
        0.0, "share of the training images held out for val/accuracy", at_least=0, at_most=0.9
    )


@dataclass
class Tracking:
    """MLflow."""

    enabled: bool = _setting(True, "record the run")
    uri: str | None = _setting(None, "null: MLFLOW_TRACKING_URI or sqlite:///mlruns/mlflow.db")
    experiment: str = _setting("lit_byz", "MLflow experiment that the runs belong to")
    patience: float = _setting(
        600.0, "seconds that runs go on without a store that is away", at_least=0
    )
    strongest_every: int = _setting(
        0, "steps between looks at the damage of the strongest attack; 0: never", at_least=0
    )
    model: Literal["auto", "final", "best", "both", "none"] = _setting(
        "auto", "which parameters a finished run keeps; auto: final, and none inside sweeps"
    )
    mlflow_model: bool = _setting(False, "keep them as an MLflow model too")
    figures: bool = _setting(
        True, "draw every run (accuracy, norms, its partition); reports draw without it, too"
    )


@dataclass
class Storage:
    """Where checkpoints are kept."""

    uri: str | None = _setting(
        None,
        "beside the local ones: mlflow (artifacts of the run), or a folder of any kind that fsspec "
        "knows; null: mlflow on Ray with a server, else nowhere",
    )


@dataclass
class Resources:
    """What one run asks of a Ray cluster."""

    cpus: int = _setting(1, "cores, and threads", at_least=1)
    gpus: float = _setting(0.0, "GPUs, or a part of one", at_least=0)


@dataclass
class Trainer:
    """Lightning."""

    accelerator: Literal["auto", "cpu", "gpu"] = _setting("auto", "where the model lives")
    devices: int = _setting(
        1, "processes or GPUs that share the honest workers of one run", at_least=1
    )
    precision: Literal["32-true", "64-true", "bf16-mixed"] = _setting(
        "32-true", "of the gradients; the server's geometry is float64 in any case"
    )
    callbacks: list[Any] = _setting(
        [], "further callbacks: dotted paths, or mappings of name and constructor arguments"
    )


@dataclass
class Config:
    """A resolved config."""

    seed: int = _setting(1, "of everything random in a run", at_least=0)
    resume: str | None = _setting(None, "auto: go on from the run's last checkpoint; or its path")
    resume_as: Literal["same", "new"] = _setting(
        "same", "new: resume=PATH may be another run's, and makes a new experiment of its own"
    )
    dataset: dict[str, Any] = field(default_factory=dict)
    partition: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    workers: Workers = field(default_factory=Workers)
    clip: dict[str, Any] = field(default_factory=dict)
    mix: dict[str, Any] = field(default_factory=dict)
    rule: dict[str, Any] = field(default_factory=dict)
    attack: dict[str, Any] = field(default_factory=dict)
    server: Server = field(default_factory=Server)
    train: Train = field(default_factory=Train)
    data: Data = field(default_factory=Data)
    tracking: Tracking = field(default_factory=Tracking)
    trainer: Trainer = field(default_factory=Trainer)
    storage: Storage = field(default_factory=Storage)
    resources: Resources = field(default_factory=Resources)


SECTIONS: dict[str, type] = {
    "workers": Workers,
    "server": Server,
    "train": Train,
    "data": Data,
    "tracking": Tracking,
    "trainer": Trainer,
    "storage": Storage,
    "resources": Resources,
}

# What does not change a run's result, and so is no part of its identity: where things are kept, how
# often they are saved, and on which device. A section stands for all of its keys. (A user's own
# data set may be another one in another folder: its content counts, see ``own_data``.)
NOT_IDENTITY = frozenset(
    {
        "resume",
        "resume_as",
        "data.root",
        "data.test_batch_size",
        "tracking",
        "trainer.accelerator",
        "trainer.devices",
        "train.checkpoint_every",
        "storage",
        "resources",
    }
)
# Of these, what may make a run fail: a failed run is tried again when one of them has changed.
ENVIRONMENT = (
    "data.root",
    "data.test_batch_size",
    "trainer.accelerator",
    "trainer.devices",
    "train.checkpoint_every",
)
