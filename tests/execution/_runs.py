"""Small tracked runs on the digits, parts that a user would write, and a look into the store."""

import contextlib
import sqlite3
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lit_byz import TrainResult, train
from tests.tracking._stores import DATABASE, new_store

USERS_PARTS = """\
    import os
    import pathlib
    import shutil
    import signal
    from dataclasses import dataclass

    import torch
    from lightning.pytorch.callbacks import Callback
    from torch import nn

    from lit_byz.attacks import Attack, Move

    class TinyNet(nn.Module):
        output = "log_probabilities"

        def __init__(self, shape, classes: int, activation=nn.ReLU) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv2d(shape[0], 4, 5, stride=3), activation(), nn.BatchNorm2d(4),
                nn.Dropout(0.2), nn.Flatten(), nn.Linear(256, 8), nn.Dropout(0.2),
                nn.Linear(8, classes), nn.LogSoftmax(dim=-1),
            )

        def forward(self, images):
            return self.layers(images)

    # What these do is said by the environment: callbacks are a part of a run's identity, and a run
    # that is killed and the one that goes on are the same.

    class SignalAt(Callback):
        def on_train_batch_end(self, trainer, pl_module, *_):
            step, sent, times = os.environ.get("SIGNAL_AT", "0 SIGINT 0").split()
            if pl_module.global_step == int(step):
                for _ in range(int(times)):
                    os.kill(os.getpid(), getattr(signal, sent))

    class DieElsewhere(Callback):
        def on_train_batch_end(self, trainer, pl_module, *_):
            if trainer.global_rank == 1 and pl_module.global_step == 3:
                os.kill(os.getpid(), signal.SIGKILL)

    class CopyCheckpoint(Callback):
        def on_train_batch_start(self, trainer, pl_module, *_):
            step, store, copy = os.environ.get("COPY_AT", "-1 - -").split()
            if pl_module.global_step == int(step):
                (path,) = pathlib.Path(store).glob("checkpoints/*/last.ckpt")
                shutil.copy(path, copy)

    class KeepParameters(Callback):
        def __init__(self, path: str | None = None) -> None:
            self.path = path

        def on_train_end(self, trainer, pl_module):
            path = self.path or os.environ.get("KEEP_IN")
            if path:
                torch.save(pl_module.model.state_dict(), path)

    @dataclass(frozen=True)
    class Breaks(Attack):
        step: int = 3

        def plan(self, scene, state):
            if scene.step == self.step:
                raise RuntimeError("the attackers lost\\ntheir nerve")
            return Move(scene.honest, -scene.mean)
"""
MODULE = "parts_of_a_user"
# Send a signal to their own process, copy a checkpoint, keep the last parameters: where told to.
CALLBACKS = (
    f"trainer.callbacks=[{MODULE}.SignalAt, {MODULE}.CopyCheckpoint, {MODULE}.KeepParameters]"
)
QUICK = ["model=logreg", "workers.honest=5", "workers.batch_size=8", "train.eval_every=4"]
QUICK += ["tracking.figures=false"]


def write_users_parts(folder: Path) -> None:
    (folder / f"{MODULE}.py").write_text(textwrap.dedent(USERS_PARTS))


def wishes(
    *,
    signal: tuple[int, str] | tuple[int, str, int] | None = None,
    copy: tuple[int, Path, Path] | None = None,
    keep: Path | None = None,
) -> dict[str, str]:
    """Variables that tell ``CALLBACKS`` what to do.

    A signal after so many steps, perhaps several times; a copy of the checkpoint that a store has
    after so many steps; a file for the last parameters.
    """
    told = {}
    if signal is not None:
        told["SIGNAL_AT"] = " ".join(map(str, (*signal, 1)[:3]))
    if copy is not None:
        told["COPY_AT"] = " ".join(map(str, copy))
    if keep is not None:
        told["KEEP_IN"] = str(keep)
    return told


@contextlib.contextmanager
def wishing(**told: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in wishes(**told).items():
            patch.setenv(name, value)
        yield


def quick(folder: Path, *settings: str, **arguments: Any) -> TrainResult:
    """A run of a second or less, tracked in ``folder``."""
    return train([*QUICK, f"tracking.uri={new_store(folder)}", *settings], **arguments)


def rows(folder: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """What the store's database says, asked without MLflow."""
    database = sqlite3.connect(folder / DATABASE)
    try:
        return list(database.execute(query, values))
    finally:
        database.close()


def steps_of(folder: Path, run_id: str | None, key: str) -> list[int]:
    query = "select step from metrics where run_uuid = ? and key = ? order by step"
    return [step for (step,) in rows(folder, query, run_id, key)]


def duplicates(folder: Path) -> list[tuple[Any, ...]]:
    """Metrics that a run has more than once for the same step."""
    query = "select run_uuid, key, step from metrics group by 1, 2, 3 having count(*) > 1"
    return rows(folder, query)


def values_of(folder: Path, run_id: str | None) -> dict[tuple[str, int], float]:
    """Every value of a run by name and step; those that depend on the clock are left out."""
    query = "select key, step, value from metrics where run_uuid = ?"
    found = rows(folder, query, run_id)
    return {(key, step): value for key, step, value in found if not key.startswith("speed/")}


def status_of(folder: Path, run_id: str | None) -> str:
    ((status,),) = rows(folder, "select status from runs where run_uuid = ?", run_id)
    return str(status)


def tags_of(folder: Path, run_id: str | None) -> dict[str, str]:
    return dict(rows(folder, "select key, value from tags where run_uuid = ?", run_id))  # type: ignore[arg-type]


def run_ids(folder: Path) -> list[str]:
    return [run_id for (run_id,) in rows(folder, "select run_uuid from runs order by start_time")]


def timeless(history: dict[str, list[tuple[int, float]]]) -> dict[str, list[tuple[int, float]]]:
    return {key: points for key, points in history.items() if not key.startswith("speed/")}


def command(folder: Path, settings: Sequence[str]) -> int:
    """The exit code of ``pipelines/train.py`` with these settings, called in this process."""
    from lit_byz.cli import command as cli
    from lit_byz.cli import train as pipeline

    arguments = [*QUICK, f"tracking.uri={new_store(folder)}", *settings, "--quiet"]
    return cli.command("train", pipeline.run, pipeline.options, arguments)
