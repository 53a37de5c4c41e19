"""Robust-DSGD as a LightningModule: all workers of a round, the attack and the server in one step.

>>> from lit_byz.attacks import SignFlip
>>> from lit_byz.models import MODELS, initialise
>>> from lit_byz.robust import ARC, CWTM, NNM, RobustAggregator
>>> from lit_byz.training import WorkerData
>>> server = RobustAggregator(CWTM(f=1), clip=ARC(f=1), mix=NNM(f=1))
>>> model = initialise(MODELS["logreg"], seed=1)
>>> module = RobustDSGD(model, server, SignFlip(), f=1, seed=1)
>>> data = WorkerData("digits", "extreme", workers=10, batch_size=10, seed=1)

and then, with a trainer of Lightning's own, ``trainer.fit(module, datamodule=data)``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.core.optimizer import LightningOptimizer
from torch import Tensor, nn

from lit_byz._checks import check_integer, check_minority
from lit_byz._streams import Stream, remember_torch, seed_torch
from lit_byz._warn import warn
from lit_byz.attacks import Attack, Move, NoAttack, Scene, State
from lit_byz.robust import Basis, RobustAggregator, Rule
from lit_byz.robust.vectors import NothingFinite, as_server
from lit_byz.training._divided import Divided
from lit_byz.training._flat import FlatParameters
from lit_byz.training._given import (
    attack_of,
    checked_model,
    refuse_other_rounds,
    round_of,
    settings_of,
)
from lit_byz.training._guest import Farewell, welcome
from lit_byz.training._judged import Judged, state_of
from lit_byz.training._serve import serve
from lit_byz.training._stochastic import Undo, WorkerLayers, over_rows
from lit_byz.training._task import Task
from lit_byz.training._workers import HonestWorkers
from lit_byz.training.data import Round, Rounds, WorkerData
from lit_byz.training.settings import Milestones, Observation, TrainSettings, iterate_step


class RobustDSGD(Judged):
    """The paper's Algorithm 3 (and 1, and plain DSGD) with manual optimisation.

    The data come from the trainer's :class:`WorkerData`, or are given as ``data``. ``momentums``
    holds the honest workers' vectors, and in its last row what the attackers write. All randomness
    of training comes from ``seed`` and the step's number, so a run can go on from any step; the
    parameters that ``model`` begins with are the caller's (:func:`lit_byz.models.initialise`).
    Validation logs ``test/accuracy`` and ``test/loss``, and ``val/…`` where the data hold images
    out. While it is trained, some layers of ``model`` are replaced; afterwards it is as it was
    given, with its last parameters. ``iterate`` is θ̂ by name, where the settings ask for it and the
    run came to it.

    A fit begins with zero momentums, unless it goes on from a checkpoint or the same trainer's last
    one. Torch's global random numbers, from which layers draw, are afterwards what they were.
    """

    momentums: Tensor

    def __init__(
        self,
        model: nn.Module,
        server: RobustAggregator | Rule,
        attack: Attack | None = None,
        f: int = 0,
        settings: TrainSettings | Mapping[str, Any] | None = None,
        seed: int = 0,
        data: WorkerData | None = None,
    ) -> None:
        super().__init__()
        f, seed = check_integer(self, "f", f, 0), check_integer(self, "seed", seed, 0)
        made = settings_of(settings)
        settings = asdict(made)  # what a checkpoint keeps of them, without any class
        self.save_hyperparameters(ignore=["model", "server", "attack", "data"])
        self.automatic_optimization = False
        self.model = checked_model(model)
        self.server = as_server(self, server)
        self.attack = attack_of(attack)
        self.f = f
        self.settings = made
        self.seed = seed
        self.flat = FlatParameters(model)
        self.register_buffer("momentums", torch.zeros(0, self.flat.size))
        self.attack_state: State = {}
        self.gradient_method: str | None = None
        self.observed: Observation | None = None
        self.sent: Move | None = None
        self.diverged_at: int | None = None
        self.iterate: dict[str, Tensor] | None = None
        self.iterate_step = iterate_step(seed, made.steps)
        self._data = data
        self._without_attack = attack is None
        self._workers: HonestWorkers | None = None
        self._leave: list[Undo] | None = None
        self._counted: dict[str, list[Tensor]] = {}
        self._divided: Divided | None = None

    @property
    def honest(self) -> Tensor:
        """The momentums (h, d) of the honest workers that this process computes."""
        return self.momentums[:-1]

    @property
    def received(self) -> Basis:
        """The momentums of all honest workers as the server received them last."""
        return Basis(self.honest) if self._divided is None else self._divided.basis()

    def any_process(self, flag: bool) -> bool:
        """Whether some process of the run says so; to be asked by all of them at once."""
        return flag if self._divided is None else self._divided.sharding.any(flag)

    @property
    def classes(self) -> int:
        return self.data.classes

    def setup(self, stage: str) -> None:
        super().setup(stage)
        if stage != "fit":
            return
        refuse_other_rounds(self._trainer)
        workers = self.batches.workers
        check_minority(self, self.f, workers + self.f, "workers")
        self.server.check(workers + self.f)
        self.attack.check(workers)
        if self._leave is None:
            self._leave = [remember_torch(), welcome(self.model)]
        self.flat = FlatParameters(self.model)
        vectors = (self.server, self.attack, self.momentums.new_zeros(1, self.flat.size))
        self._divided = divided = Divided.among_processes(workers, *vectors)
        here = range(workers) if divided is None else range(workers)[divided.sharding.own]
        self._make_room(len(here))
        if self.global_step == 0:  # what a checkpoint has of it is loaded later
            self._begin_anew()

    def _begin_anew(self) -> None:
        self.momentums.zero_()
        self.attack_state = {}
        self.diverged_at = self.iterate = self.gradient_method = None
        self.observed = self.sent = None

    def _make_room(self, workers: int) -> None:
        if len(self.momentums) != workers + 1:
            self.momentums = self.momentums.new_zeros(workers + 1, self.flat.size)

    def give_back(self) -> None:
        """Make the model what it was before training, but for its parameters, and torch's draws."""
        for back in self._leave or ():
            back()
        self._leave = None

    def configure_callbacks(self) -> Sequence[Callback]:
        if self.trainer.state.fn == "fit":  # other callbacks may copy the module before its setup
            self._make_room(self.data.workers)
        return [Farewell()]

    def on_fit_start(self) -> None:
        self.batches.images.to(self.device)
        example, _ = self.batches.images.train_batch(torch.zeros(1, dtype=torch.long))
        layers = WorkerLayers(self.model, example.to(self.flat.parameters[0].dtype))
        settings, divided = self.settings, self._divided
        if divided is not None:
            divided.columns = divided.columns.to(self.momentums)
        self._workers = HonestWorkers(
            task=Task(self.model, self.loss, self.flat, layers),
            batches=self.batches if divided is None else self.batches.some(divided.sharding.own),
            seed=self.seed,
            momentum=settings.momentum,
            decay=settings.weight_decay if settings.weight_decay_mode == "worker" else 0.0,
            full_batch=settings.full_batch,
            local_steps=settings.local_steps,
            local_lr=settings.local_lr,
            mean=over_rows if divided is None else divided.mean,
        )

    def train_dataloader(self) -> Rounds:
        """Where the trainer has no data module: the rounds of the data that were given."""
        return Rounds(self.batches, lambda: int(self.global_step))

    def configure_optimizers(self) -> Any:
        decay = self.settings.weight_decay if self.settings.weight_decay_mode == "server" else 0.0
        made = torch.optim.SGD(self.flat.parameters, lr=self.settings.lr, weight_decay=decay)
        return [made], [{"scheduler": Milestones(made, self.settings), "interval": "step"}]

    def training_step(self, batch: Round, batch_idx: int) -> None:
        step, workers, batch = self.global_step, self._workers, round_of(batch)
        assert workers is not None
        seed_torch(self.seed, Stream.LAYERS, step)
        if self.gradient_method is None:
            with torch.autocast(self.device.type, enabled=False):
                self.gradient_method = workers.choose_method(self.settings.gradients)
        if step == self.iterate_step and self.settings.output == "random_iterate":
            self.iterate = state_of(self.model)
        flip = self.classes if self.attack.needs_flipped and self.f > 0 else None
        own = slice(None) if self._divided is None else self._divided.sharding.own
        drawn = (batch.images[own], batch.labels[own])
        losses, flipped = workers.update(self.honest, step, self.gradient_method, flip, drawn)
        try:
            # What the server sees is added up in the precision that it has, whatever the model's.
            with torch.autocast(self.device.type, enabled=False):
                output = self._serve(step, float(workers.mean(losses)), flipped)
        except NothingFinite:
            # The attackers have won: no honest vector is a number any more.
            self.diverged_at = step
            self.trainer.should_stop = True
            return
        self.flat.attach(output)
        optimizer, schedule = self.optimizers(), self.lr_schedulers()
        assert isinstance(optimizer, LightningOptimizer)
        if not isinstance(schedule, Milestones):
            raise TypeError(
                "RobustDSGD: the learning rate's schedule must stay the module's own, and a "
                f"callback has replaced it by {type(schedule).__name__}, as "
                "StochasticWeightAveraging does"
            )
        optimizer.step()
        schedule.step()
        if self.global_step == self.trainer.max_steps:
            self.trainer.should_stop = True  # the last parameters are evaluated, too
        every = getattr(self.trainer, "log_every_n_steps", 50)
        if every and self.global_step % every == 0:
            loss = self.observed.loss if self.observed is not None else float("nan")
            self.log("train/loss", loss, prog_bar=True, logger=False)

    def _serve(self, step: int, loss: float, flipped: Tensor | None) -> Tensor:
        """The server's output R; what happened on the way goes to ``observed``."""
        divided = self._divided
        honest, buffer = Basis(self.honest), self.momentums
        if divided is not None:
            honest, flipped = divided.receive(self.honest, flipped)
            buffer = divided.columns
        scene = Scene(honest, self.f, self.server, step, flipped, buffer)
        output, self.observed, self.sent = serve(scene, self.attack, self.attack_state, loss)
        return output if divided is None else divided.output(output)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["robust_dsgd"] = {
            "attack_state": dict(self.attack_state),
            "gradient_method": self.gradient_method,
            "iterate": self.iterate,
            "iterate_step": self.iterate_step,
            "attack": type(self.attack).__name__,
        }
        if self._divided is not None:
            self._divided.save(checkpoint, self.attack, self.honest)

    def _own_iterate(
        self, kept: Mapping[str, Any], state: Mapping[str, Tensor]
    ) -> dict[str, Tensor] | None:
        """θ̂ of a checkpoint, unless that is another run's, which took it after another step."""
        found: dict[str, Tensor] | Tensor | None = kept["iterate"]
        other = kept.get("iterate_step", self.iterate_step) != self.iterate_step
        if other or self.settings.output != "random_iterate":
            return None
        if isinstance(found, Tensor):  # of a version that kept the parameters alone
            own = {k.removeprefix("model."): v for k, v in state.items() if k.startswith("model.")}
            found = own | self.flat.named(list(self.flat.views(found)))
        return found

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        kept = checkpoint["robust_dsgd"]
        self.attack_state = dict(kept["attack_state"])
        if self._divided is not None:
            self._divided.load(checkpoint, self.attack, self.attack_state)
        momentums = checkpoint["state_dict"]["momentums"]
        self.to(momentums.dtype)  # Lightning does it later, after what is loaded has been rounded
        self.gradient_method = kept["gradient_method"]
        self.iterate = self._own_iterate(kept, checkpoint["state_dict"])
        attack = kept.get("attack", NoAttack.__name__)
        if self._without_attack and self.f > 0 and attack != NoAttack.__name__:
            warn(
                f"RobustDSGD: the checkpoint is of a run under {attack}, and no attack is given: "
                f"its {self.f} Byzantine workers will send the honest mean; give attack={attack}(…)"
            )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """With room for as many momentums as there are."""
        if (found := state_dict.get(f"{prefix}momentums")) is not None:
            self._make_room(len(found) - 1)
        super()._load_from_state_dict(state_dict, prefix, *rest)
