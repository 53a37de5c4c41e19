"""Trained models that a run keeps, and how to have them again."""

import contextlib
import warnings
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from omegaconf import DictConfig, OmegaConf
from torch.nn.functional import cross_entropy, nll_loss

from lit_byz._passwords import without_secrets_of
from lit_byz._quiet import for_a_while
from lit_byz._warn import warn
from lit_byz.config.components import build, build_model
from lit_byz.config.compose import compose, to_plain
from lit_byz.config.identity import changed_classes
from lit_byz.errors import BadRequest, RunFailed
from lit_byz.tracking.claims import ClaimLost
from lit_byz.tracking.runs import TrackedRun
from lit_byz.tracking.store import CODE, Store, open_store
from lit_byz.training.settings import loss_of

if TYPE_CHECKING:
    from torch import nn

FOLDER = "model"
WHICH = ("final", "best")
MLFLOW_MODEL = "mlflow_model"


def kept_models(config: DictConfig, *, part_of_study: bool) -> str:
    """Which parameters a run keeps: final, best, both or none."""
    wanted = str(config.tracking.model)
    if wanted != "auto":
        return wanted
    return "none" if part_of_study else "final"


def save_models(
    run: TrackedRun, states: Mapping[str, Mapping[str, torch.Tensor]], config: DictConfig
) -> None:
    """Keep parameters as artifacts that load where no code may be run.

    The run is complete without them: where they cannot be kept, a warning says so.
    """
    if run.store is None or run.run_id is None:
        return
    try:
        _save(run, run.store, run.run_id, states, config)
    except ClaimLost:
        raise  # the run is somebody else's
    except Exception as error:  # whatever a store, a disk or MLflow's tracing of a model may raise
        reason = " ".join(without_secrets_of(str(error), run.store.uri).split())[:300]
        warnings.warn(f"the run's model could not be kept: {reason}", stacklevel=2)


def _save(
    run: TrackedRun,
    store: Store,
    run_id: str,
    states: Mapping[str, Mapping[str, torch.Tensor]],
    config: DictConfig,
) -> None:
    with TemporaryDirectory() as folder:
        for name, state in states.items():
            path = Path(folder) / f"{name}.pt"
            plain = {key: value.detach().cpu().contiguous() for key, value in state.items()}
            torch.save(plain, path)
            run.tracker.save_file(path, FOLDER)
        if config.tracking.mlflow_model and states:
            state = states.get("final") or next(iter(states.values()))
            _save_for_mlflow(store, run_id, config, state, Path(folder) / MLFLOW_MODEL)


def _save_for_mlflow(
    store: Store, run_id: str, config: DictConfig, state: Mapping[str, Any], path: Path
) -> None:
    """As MLflow's own kind of model, with the shapes that it takes and gives."""
    import mlflow.pytorch
    from mlflow.models import infer_signature

    _warn_if_changed(store, run_id, config)
    model = build_model(config)
    model.load_state_dict(state)
    dataset = build("dataset", config.dataset)
    images = dataset.load(config.data.root)
    example, _ = next(images.test_batches(2))
    with torch.no_grad():
        output = model.eval()(example)
    sample = example.numpy()
    signature = infer_signature(sample, output.numpy())
    mlflow.pytorch.save_model(model, str(path), signature=signature, input_example=sample)
    store.client.log_artifacts(run_id, str(path), MLFLOW_MODEL)


def config_of(store: Store, run_id: str) -> DictConfig:
    """The config of a tracked run."""
    run = store.run(run_id)
    if run is None:
        raise BadRequest(f"run {run_id}: there is none in this store")
    path = _artifact(store, run_id, "config.yaml")
    if path is None:
        raise BadRequest(f"run {run_id}: has no config; is it a sweep or a cell?")
    return compose(beneath=OmegaConf.to_container(OmegaConf.load(path)))  # type: ignore[arg-type]


def load_model(run_id: str, which: str = "final", *, uri: str | None = None) -> "nn.Module":
    """The model of a tracked run with its ``final`` or ``best`` parameters, in evaluation mode.

    ``final`` are the last ones, or θ̂ with ``train.output=random_iterate``. ``uri`` names the store,
    as ``tracking.uri`` does. A run with ``trainer.precision=bf16-mixed`` was evaluated under
    ``torch.autocast`` with ``torch.bfloat16``.
    """
    if which not in WHICH:
        raise BadRequest(f"which = {which!r}: must be one of {', '.join(WHICH)}")
    with for_a_while():
        return _loaded(open_store(uri), run_id, which)


def _loaded(store: Store, run_id: str, which: str) -> "nn.Module":
    config = config_of(store, run_id)
    path = _artifact(store, run_id, f"{FOLDER}/{which}.pt")
    if path is None:
        raise BadRequest(
            f"run {run_id}: has kept no {which} parameters; tracking.model={which} keeps them"
        )
    _warn_if_changed(store, run_id, config)
    model = build_model(config)
    if config.trainer.precision == "64-true":
        model.double()
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return model.eval()


def _as_trained(config: DictConfig) -> contextlib.AbstractContextManager[object]:
    """The precision in which a run evaluates its model."""
    mixed = config.trainer.precision == "bf16-mixed"
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed)


def _warn_if_changed(store: Store, run_id: str, config: DictConfig) -> None:
    """Old parameters in a new model need not be what was trained."""
    run = store.run(run_id)
    code = "" if run is None else run.data.tags.get(CODE, "")
    for path in changed_classes(to_plain(config), ("model", "dataset"), code):
        warn(f"run {run_id}: {path} has changed since; what is found now may not be the run's")


@torch.no_grad()
def confusion(model: "nn.Module", config: DictConfig) -> tuple[np.ndarray, float]:
    """How many test images of each class were taken for each class, and the mean loss."""
    dataset = build("dataset", config.dataset)
    images = dataset.load(config.data.root)
    loss = {"nll": nll_loss, "cross_entropy": cross_entropy}[loss_of(model, config.train.loss)]
    classes = int(dataset.classes)
    counts = np.zeros((classes, classes), dtype=np.int64)
    total = 0.0
    model.eval()
    for x, y in images.test_batches(config.data.test_batch_size):
        with _as_trained(config):
            output = model(x.to(next(model.parameters()).dtype))
            total += float(loss(output, y)) * len(y)
        np.add.at(counts, (y.numpy(), output.argmax(1).numpy()), 1)
    return counts, total / images.test_size


def _artifact(store: Store, run_id: str, path: str) -> str | None:
    """A local copy of a run's artifact; None if it has none, an error if that cannot be seen."""
    from mlflow.exceptions import MlflowException

    folder = path.rpartition("/")[0]
    try:
        listed = [entry.path for entry in store.client.list_artifacts(run_id, folder or None)]
        return str(store.client.download_artifacts(run_id, path)) if path in listed else None
    except (MlflowException, OSError) as error:
        reason = " ".join(without_secrets_of(str(error), store.uri).split())[:300]
        raise RunFailed(f"run {run_id}: its files cannot be read: {reason}") from error
