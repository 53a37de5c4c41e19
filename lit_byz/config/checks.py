"""What must hold between the keys of a config."""

import itertools
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch

from lit_byz.config.components import CALLBACKS, GROUPS, build, component
from lit_byz.errors import BadRequest

Plain = dict[str, Any]


def check_workers(config: Plain) -> None:
    """A minority of Byzantine workers, in reality and in what each part of the server assumes."""
    honest, byzantine = config["workers"]["honest"], config["workers"]["f"]
    n = honest + byzantine
    declared = {"workers.f": byzantine, "server.f": config["server"]["f"]}
    for group in ("clip", "mix", "rule"):
        if "f" in config[group]:
            declared[f"{group}.f"] = config[group]["f"]
    for key, f in declared.items():
        if f is not None and 2 * f >= n:
            raise BadRequest(
                f"{key} = {f}: must satisfy 2 f < n, and n = {n} "
                f"(workers.honest = {honest}, workers.f = {byzantine})"
            )
    devices = config["trainer"]["devices"]
    if devices > honest:
        raise BadRequest(
            f"trainer.devices = {devices}: there are only {honest} honest workers to divide among "
            "them"
        )


def check_schedule(config: Plain) -> None:
    """Milestones in order, and a value for each of them if there are any."""
    train = config["train"]
    milestones, values = train["lr_milestones"], train["lr_values"]
    if any(later <= earlier for earlier, later in itertools.pairwise(milestones)):
        raise BadRequest(f"train.lr_milestones = {milestones}: must be increasing")
    if values and len(values) != len(milestones):
        raise BadRequest(
            f"train.lr_values = {values}: must have one value for each of "
            f"train.lr_milestones = {milestones}, or be empty"
        )


def check_callbacks(config: Plain) -> None:
    """Callbacks are named by dotted paths."""
    for entry in config["trainer"]["callbacks"]:
        name = entry.get("name") if isinstance(entry, dict) else entry
        if not isinstance(name, str) or "." not in name:
            raise BadRequest(
                f"trainer.callbacks: {entry!r} must be a dotted path such as my_module.MyCallback, "
                "or a mapping of name (the dotted path) and constructor arguments"
            )
        _ = CALLBACKS[name]  # one that cannot be had is an error now


def check_components(config: Plain) -> None:
    """Every constructor takes its arguments, the server and the attack take so many workers, and
    the model takes the images of the data set."""
    made = {group: build(group, config[group]) for group in GROUPS if group != "model"}
    _check_counts(config, made)
    dataset, train = made["dataset"], config["train"]
    section = dict(config["model"])
    name = section["name"]
    output = _output_of(
        component("model", name), json.dumps(section), tuple(dataset.shape), dataset.classes
    )
    train["gradients"] = _gradient_method(config, json.dumps(section), dataset)
    if train["loss"] == "auto":
        train["loss"] = "nll" if output == "log_probabilities" else "cross_entropy"
    elif train["loss"] == "nll" and output == "logits":
        raise BadRequest(
            f"train.loss = 'nll': needs log-probabilities, and model={name} returns logits; "
            "must be cross_entropy or auto"
        )


def _check_counts(config: Plain, made: Mapping[str, Any]) -> None:
    """The server can work on so many vectors, and the attack on so many honest workers."""
    from lit_byz.attacks import Attack
    from lit_byz.robust import Clip, Mix, Rule

    honest = config["workers"]["honest"]
    n = honest + config["workers"]["f"]
    mixed = made["mix"].rows_after(n) if isinstance(made["mix"], Mix) else n
    parts = (("clip", Clip, n), ("mix", Mix, n), ("rule", Rule, mixed), ("attack", Attack, honest))
    for group, kind, count in parts:
        if isinstance(made[group], kind):
            try:
                made[group].check(count)
            except ValueError as error:
                raise BadRequest(f"{group}={config[group]['name']}: {error}") from error


def _gradient_method(config: Plain, section: str, dataset: Any) -> str:
    """How gradients will be computed: the same for the same model and device, whatever the hour."""
    train, accelerator = config["train"], config["trainer"]["accelerator"]
    simple = not train["full_batch"] and train["local_steps"] == 1
    if train["gradients"] != "auto":
        return str(train["gradients"]) if simple else "loop"
    cuda = accelerator == "gpu" or (accelerator == "auto" and torch.cuda.is_available())
    name = config["model"]["name"]
    made_of = component("model", name)
    shape = tuple(dataset.shape)
    return _default_method(
        made_of, section, shape, dataset.classes, "cuda" if cuda else "cpu", simple
    )


@lru_cache(maxsize=64)
def _default_method(
    _class: type, section: str, shape: tuple[int, ...], classes: int, device: str, simple: bool
) -> str:
    from lit_byz.training.gradient_methods import default_method

    settings = json.loads(section)
    with torch.random.fork_rng(devices=[]):
        model = build("model", settings, shape=shape, classes=classes)
        example = torch.zeros(2, *shape)
        return default_method(settings["name"], model, example, device=device, simple=simple)


@lru_cache(maxsize=64)
def _output_of(_class: type, section: str, shape: tuple[int, ...], classes: int) -> str | None:
    """What a model says that it returns, after it was tried on two images of this shape.

    Kept for later calls: a sweep checks hundreds of configs with the same few models.
    """
    settings = json.loads(section)
    with torch.random.fork_rng(devices=[]):
        model = build("model", settings, shape=shape, classes=classes)
        if not isinstance(model, torch.nn.Module):
            raise BadRequest(f"model={settings['name']}: must be a torch.nn.Module class")
        try:
            with torch.no_grad():
                returned = model.eval()(torch.zeros(2, *shape))
        except Exception as error:  # whatever a user's model raises, it does not take these images
            raise BadRequest(
                f"model={settings['name']}: does not take images of shape {shape}: "
                f"{' '.join(str(error).split())}"
            ) from error
    if not isinstance(returned, torch.Tensor) or tuple(returned.shape) != (2, classes):
        found = tuple(returned.shape) if isinstance(returned, torch.Tensor) else type(returned)
        raise BadRequest(
            f"model={settings['name']}: returns {found} for two images, must be {(2, classes)}"
        )
    return getattr(model, "output", None)


def check_resume(config: Plain) -> None:
    """A new experiment begins from some file."""
    if config["resume_as"] == "new" and config["resume"] in (None, "auto"):
        raise BadRequest("resume_as = new: needs resume=FILE, the checkpoint to begin from")


CHECKS: tuple[Callable[[Plain], None], ...] = (
    check_workers,
    check_schedule,
    check_callbacks,
    check_resume,
    check_components,
)
