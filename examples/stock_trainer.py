"""A plain Lightning trainer, with Lightning's own callbacks and loggers, on the embedded digits.

python examples/stock_trainer.py [FOLDER]

Ten honest workers and two Byzantine ones; nothing of lit_byz but the module and its data.
"""

import sys
from pathlib import Path

import lit_byz  # noqa: F401  (before lightning: it makes torchvision importable beside a CPU torch)

import lightning  # isort: skip
from lightning.pytorch.callbacks import (
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
    RichProgressBar,
)
from lightning.pytorch.loggers import CSVLogger, MLFlowLogger

from lit_byz.attacks import FOE
from lit_byz.models import MODELS, initialise
from lit_byz.robust import ARC, CWTM, NNM, RobustAggregator
from lit_byz.training import RobustDSGD, TrainSettings, WorkerData

F = 2


def main(folder: Path) -> float:
    """Train, keep the best parameters, and evaluate them; returns their accuracy."""
    server = RobustAggregator(CWTM(F), clip=ARC(F), mix=NNM(F))
    settings = TrainSettings(lr=0.2, lr_milestones=[120])
    model = initialise(MODELS["mlp"], seed=1)  # else its parameters are others every time
    module = RobustDSGD(model, server, FOE(), f=F, settings=settings, seed=1)
    data = WorkerData("digits", "extreme", workers=10, batch_size=15, seed=1)
    best = ModelCheckpoint(folder / "best", monitor="test/accuracy", mode="max", save_last=True)
    trainer = lightning.Trainer(
        max_steps=200,
        val_check_interval=20,
        check_val_every_n_epoch=None,
        log_every_n_steps=10,
        callbacks=[
            best,
            EarlyStopping(monitor="test/accuracy", mode="max", patience=8),
            LearningRateMonitor(logging_interval="step"),
            RichProgressBar(),
        ],
        logger=[
            CSVLogger(folder),
            MLFlowLogger(tracking_uri=f"sqlite:///{folder}/mlflow.db"),
        ],
    )
    trainer.fit(module, datamodule=data)
    kept = RobustDSGD.load_from_checkpoint(
        best.best_model_path, model=MODELS["mlp"](), server=server, attack=FOE()
    )
    (found,) = trainer.validate(kept, datamodule=data)
    return float(found["test/accuracy"])


if __name__ == "__main__":
    where = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/stock_trainer")
    where.mkdir(parents=True, exist_ok=True)
    print(f"accuracy of the best parameters: {main(where):.3f}")
