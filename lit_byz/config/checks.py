"""What must hold between the keys of a config."""

import contextlib
import inspect
import itertools
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from lit_byz._passwords import HIDDEN
from lit_byz._threads import threads
from lit_byz.config.components import CALLBACKS, GROUPS, build, component, registry
from lit_byz.config.fields import LARGEST_FLOAT
from lit_byz.config.settled import once
from lit_byz.errors import BadRequest

Plain = dict[str, Any]
# Bytes: the name is a folder's too, and MLflow has a limit of its own.
LONGEST_NAME = 200
# More parameters than any machine has room for, times the number of workers; and so many that a
# model takes seconds to make.
MOST_PARAMETERS = 2**31 - 1
LARGE = 50_000_000


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
    # Local steps are divided by it.
    if train["local_steps"] > 1 and train["local_lr"] < 1 / LARGEST_FLOAT:
        raise BadRequest(
            f"train.local_lr = {train['local_lr']}: must be at least {1 / LARGEST_FLOAT:.3g}"
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
        arguments = {k: v for k, v in entry.items() if k != "name"} if name is not entry else {}
        made_of = CALLBACKS[name]  # one that cannot be had is an error now
        try:
            inspect.signature(made_of).bind(**arguments)
        except TypeError as error:
            raise BadRequest(f"trainer.callbacks: {name}: {error}") from error
        except ValueError:
            pass  # a class of a C extension may not tell


def check_tracking(config: Plain) -> None:
    """The experiment's name is a folder's name; a password that was left out is missing."""
    tracking = config["tracking"]
    name = tracking["experiment"]
    if any(c in name for c in "/\\\n\r\t") or ".." in name or name.strip(" .") != name or not name:
        raise BadRequest(
            f"tracking.experiment = {name!r}: is the name of a folder too, so it must have no / or "
            "\\ and no .. in it, nor a dot or a space at its ends"
        )
    if len(name.encode()) > LONGEST_NAME:
        raise BadRequest(f"tracking.experiment = {name!r}: must have at most {LONGEST_NAME} bytes")
    if HIDDEN in (tracking["uri"] or ""):
        raise BadRequest(
            f"tracking.uri = {tracking['uri']}: the password was left out where this was printed; "
            "write it, or set MLFLOW_TRACKING_URI"
        )


def check_components(config: Plain) -> None:
    """Every constructor takes its arguments, the server and the attack take so many workers, and
    the model takes the images of the data set."""
    made = {group: _made(group, config[group]) for group in GROUPS if group != "model"}
    _check_counts(config, made)
    dataset, train = made["dataset"], config["train"]
    try:
        images = (tuple(int(size) for size in dataset.shape), int(dataset.classes))
    except (AttributeError, TypeError, ValueError) as error:
        reason = f"its class must say shape and classes: {error}"
        raise BadRequest(f"dataset={config['dataset']['name']}: {reason}") from error
    section = _as_json(config["model"])
    name = config["model"]["name"]
    output = _output_of(component("model", name), section, *images)
    config["train"] = _decided(train, _gradient_method(config, section, *images), output)
    if train["loss"] == "nll" and output == "logits":
        raise BadRequest(
            f"train.loss = 'nll': needs log-probabilities, and model={name} returns logits; "
            "must be cross_entropy or auto"
        )


@once
def _made(group: str, section: Plain) -> Any:
    return build(group, section)


@once
def _as_json(section: Plain) -> str:
    return json.dumps(section)


@once
def _decided(train: Plain, gradients: str, output: str | None) -> Plain:
    """The section ``train`` with what follows from the model in the place of auto."""
    loss = train["loss"]
    if loss == "auto":
        loss = "nll" if output == "log_probabilities" else "cross_entropy"
    return {**train, "gradients": gradients, "loss": loss}


def _check_counts(config: Plain, made: Mapping[str, Any]) -> None:
    """The server can work on so many vectors, and the attack on so many honest workers."""
    from lit_byz.attacks import Attack
    from lit_byz.robust import Clip, Mix, Rule

    honest = config["workers"]["honest"]
    n = honest + config["workers"]["f"]
    mix = config["mix"]
    if mix["name"] == "bucketing" and mix["s"] > n:
        raise BadRequest(f"mix.s = {mix['s']}: must be at most n = {n}, the number of workers")
    mixed = made["mix"].rows_after(n) if isinstance(made["mix"], Mix) else n
    parts = (("clip", Clip, n), ("mix", Mix, n), ("rule", Rule, mixed), ("attack", Attack, honest))
    for group, kind, count in parts:
        if isinstance(made[group], kind):
            try:
                made[group].check(count)
            except (TypeError, ValueError) as error:
                reason = " ".join(str(error).split())
                raise BadRequest(f"{group}={config[group]['name']}: {reason}") from error


def _gradient_method(config: Plain, section: str, shape: tuple[int, ...], classes: int) -> str:
    """How gradients will be computed: the same for the same model and device, whatever the hour."""
    train, accelerator = config["train"], config["trainer"]["accelerator"]
    simple = not train["full_batch"] and train["local_steps"] == 1
    if train["gradients"] != "auto":
        return str(train["gradients"]) if simple else "loop"
    cuda = accelerator == "gpu" or (accelerator == "auto" and _has_cuda())
    made_of = component("model", config["model"]["name"])
    return _default_method(made_of, section, shape, classes, "cuda" if cuda else "cpu", simple)


@once
def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


@lru_cache(maxsize=64)
def _default_method(
    _class: type, section: str, shape: tuple[int, ...], classes: int, device: str, simple: bool
) -> str:
    import torch

    from lit_byz.training.gradient_methods import default_method, known_method

    settings = json.loads(section)
    known = known_method(settings["name"], device=device, simple=simple)
    if known is not None:
        return known
    with torch.random.fork_rng(devices=[]):
        model = build("model", settings, shape=shape, classes=classes)
        example = torch.zeros(2, *shape)
        return default_method(settings["name"], model, example, device=device, simple=simple)


@lru_cache(maxsize=64)
def _output_of(_class: type, section: str, shape: tuple[int, ...], classes: int) -> str | None:
    """What a model says that it returns, after it was tried on two images of this shape.

    Kept for later calls: a sweep checks hundreds of configs with the same few models.
    """
    import torch

    from lit_byz.models import is_unsized

    settings = json.loads(section)
    with torch.random.fork_rng(devices=[]), _place_of(settings, shape, classes), threads(1):
        model = build("model", settings, shape=shape, classes=classes)
        if is_unsized(model):
            raise BadRequest(
                f"model={settings['name']}: has layers without sizes, such as LazyLinear; give all "
                "sizes in its constructor, which gets shape and classes if it has these arguments"
            )
        try:
            with torch.no_grad():
                returned = model.eval()(torch.zeros(2, *shape))
        except Exception as error:  # whatever a user's model raises, it does not take these images
            raise BadRequest(
                f"model={settings['name']}: does not take images of shape {shape}: "
                f"{' '.join(str(error).split())}"
            ) from error
    if not isinstance(returned, torch.Tensor) or tuple(returned.shape) != (2, classes):
        kind = type(returned).__name__
        found = tuple(returned.shape) if isinstance(returned, torch.Tensor) else f"a {kind}"
        raise BadRequest(
            f"model={settings['name']}: returns {found} for two images, must be a tensor of shape "
            f"{(2, classes)}"
        )
    return getattr(model, "output", None)


def _place_of(
    settings: Plain, shape: tuple[int, ...], classes: int
) -> contextlib.AbstractContextManager[Any]:
    """Where to try a model: one of ours that is huge, where tensors have no values."""
    if settings["name"] not in registry("model"):
        return contextlib.nullcontext()
    import torch

    nowhere = torch.device("meta")
    with nowhere:
        model = build("model", settings, shape=shape, classes=classes)
    count = sum(parameter.numel() for parameter in model.parameters())
    if count > MOST_PARAMETERS:
        raise BadRequest(
            f"model={settings['name']}: has {count:,} parameters, must have at most "
            f"{MOST_PARAMETERS:,}"
        )
    return nowhere if count > LARGE else contextlib.nullcontext()


def check_resume(config: Plain) -> None:
    """A new experiment begins from some file."""
    if config["resume_as"] == "new" and config["resume"] in (None, "auto"):
        raise BadRequest("resume_as = new: needs resume=FILE, the checkpoint to begin from")


CHECKS: tuple[Callable[[Plain], None], ...] = (
    check_workers,
    check_schedule,
    check_callbacks,
    check_tracking,
    check_resume,
    check_components,
)
