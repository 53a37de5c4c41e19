"""How a module's model is judged: validation, test and prediction, with a trainer or without."""

from collections.abc import Mapping, Sequence
from typing import Any

import lightning
import torch
from torch import Tensor, nn

from lit_byz.data import WorkerBatches
from lit_byz.errors import BadRequest
from lit_byz.training._divided import Divided
from lit_byz.training._pooled import outputs
from lit_byz.training.data import JUDGED_ON, TestImages, WorkerData
from lit_byz.training.settings import TrainSettings, loss_of

LOSSES = {"nll": nn.functional.nll_loss, "cross_entropy": nn.functional.cross_entropy}


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """A copy of a model's parameters and statistics, by name."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


class Judged(lightning.LightningModule):
    """A module whose ``model`` is judged on the test images, and on images held out."""

    model: nn.Module
    settings: TrainSettings
    diverged_at: int | None
    _data: WorkerData | None
    _divided: Divided | None
    _counted: dict[str, list[Tensor]]

    @property
    def data(self) -> WorkerData:
        """The workers' data: what was given, else the trainer's."""
        found = self._data
        if found is None and self._trainer is not None:
            found = getattr(self._trainer, "datamodule", None)
        if not isinstance(found, WorkerData):
            raise BadRequest("RobustDSGD: no data; give the trainer datamodule=WorkerData(…)")
        return found

    def setup(self, stage: str) -> None:
        """Refuse two data modules: the trainer would take one's images, the module the other's."""
        trainers = getattr(self._trainer, "datamodule", None)
        if self._data is not None and trainers is not None and trainers is not self._data:
            raise BadRequest(
                "RobustDSGD: has data of its own (data=…), and the trainer has others "
                "(datamodule=…); give them in one place"
            )

    @property
    def batches(self) -> WorkerBatches:
        return self.data.batches

    @property
    def loss(self) -> Any:
        return LOSSES[loss_of(self.model, self.settings.loss)]

    def forward(self, x: Tensor) -> Tensor:
        """The model's outputs for images; where it lies, and in the mode that it is in."""
        found: Tensor = self.model(x.to(next(self.model.parameters())))
        return found

    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> Tensor:
        """The outputs for a batch of images, or of images and labels."""
        found: Tensor = self(batch[0] if isinstance(batch, Sequence) else batch)
        return found

    def val_dataloader(self) -> list[TestImages]:
        return self.data.val_dataloader()

    def on_validation_epoch_start(self) -> None:
        self.batches.images.to(self.device)
        self._counted = {}

    def validation_step(
        self, batch: tuple[Tensor, Tensor], batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        counted = self._counted.setdefault(JUDGED_ON[dataloader_idx], [])
        divided = self._divided
        if divided is None or batch_idx % divided.sharding.size == divided.sharding.place:
            counted.append(self._judge(*batch))

    def on_validation_epoch_end(self) -> None:
        for images, counted in self._counted.items():
            right, loss, count = self._add_up(counted)
            self.log(f"{images}/accuracy", right / count, prog_bar=True)
            self.log(f"{images}/loss", loss / count)
        if self.diverged_at is not None and self.trainer.state.fn == "fit":
            # Lightning counts the step that made no new parameters as well.
            self.log("step", float(max(self.global_step - 1, 0)))

    def _add_up(self, counted: list[Tensor]) -> Tensor:
        total = torch.stack(counted).sum(0) if counted else torch.zeros(3)
        return total if self._divided is None else self._divided.sharding.sum(total)

    test_step = validation_step
    on_test_epoch_start = on_validation_epoch_start
    on_test_epoch_end = on_validation_epoch_end

    def _judge(self, x: Tensor, y: Tensor) -> Tensor:
        """How many images are classified rightly, the sum of their losses, and their number."""
        output = outputs(self.model, x.to(next(self.model.parameters()).dtype))
        right = (output.argmax(1) == y).sum().double()
        loss = self.loss(output, y).double() * len(y)
        return torch.stack([right, loss, torch.full_like(loss, len(y))])

    @torch.inference_mode()
    def evaluate(self, size: int = 250) -> tuple[float, float]:
        """Accuracy and mean loss on the test images, without a trainer."""
        was_training = self.model.training
        self.model.eval()
        counted = [self._judge(x, y) for x, y in self.batches.images.test_batches(size)]
        self.model.train(was_training)
        right, loss, count = torch.stack(counted).sum(0).tolist()
        return right / count, loss / count

    def evaluate_at(self, state: Mapping[str, Tensor], size: int = 250) -> float:
        """Accuracy with other parameters and statistics; the model's own stay as they are."""
        own = state_of(self.model)
        self.model.load_state_dict(state)
        accuracy, _ = self.evaluate(size)
        self.model.load_state_dict(own)
        return accuracy
