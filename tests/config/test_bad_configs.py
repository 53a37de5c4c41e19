"""Bad configs, each with the one line that a user gets."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lit_byz.config.compose import compose
from lit_byz.errors import BadRequest

CASES = {
    # misspelt names, at every level
    "trian.steps=5": "unknown key 'trian': did you mean 'train'?",
    "steps=5": "unknown key 'steps': did you mean 'train.steps'?",
    "atack=foe": "unknown key 'atack': did you mean 'attack'?",
    "train.step=5": "unknown key 'step' in train: did you mean 'steps'?",
    "workers.qqqq=5": "unknown key 'qqqq' in workers: there is batch_size, f, honest",
    "rule=cwtn": "unknown rule 'cwtn': did you mean 'cwtm'?",
    "dataset=mnits": "unknown dataset 'mnits': did you mean 'mnist'?",
    "attack=fo": "unknown attack 'fo': did you mean 'foe'?",
    "clip.zetta=1": "unknown key 'zetta' of clip=arc: did you mean 'zeta'?",
    "attack=foe attack.taus=1": "unknown key 'taus' of attack=foe: did you mean 'tau'?",
    "rule=average rule.f=1": "unknown key 'f' of rule=average: there is none",
    "model.hiden=[5]": "unknown key 'hiden' of model=mlp: did you mean 'hidden'?",
    # dotted paths
    "rule=no_such_module.Rule": (
        "rule 'no_such_module.Rule': cannot import no_such_module: No module named 'no_such_module'"
    ),
    "rule=fractions.Fractoin": (
        "rule 'fractions.Fractoin': fractions has no 'Fractoin'; did you mean 'Fraction'?"
    ),
    "rule=math.sqrt": "rule 'math.sqrt' is a builtin_function_or_method, not a class",
    "rule=.Rule": "rule '.Rule': must be a dotted path such as my_module.MyClass",
    # how settings are written
    "train.steps": "'train.steps': settings are written as key=value, such as seed=2",
    "train.steps:5": "'train.steps:5': settings are written as key=value, such as seed=2",
    "train.lr_milestones=[1": "train.lr_milestones: '[1' is not valid YAML",
    "train=5": "train = 5: train is a section, set its keys, such as train.steps",
    "seed=1 seed.x=2": "seed.x: 'seed' is a value, not a section",
    "rule=5": "rule = 5: must be the name of an option or a dotted path",
    "rule=null": "rule = None: must be the name of an option or a dotted path",
    "config=nowhere.yaml": "cannot read nowhere.yaml: No such file or directory",
    "config=5": "config = 5: must be text",
    # interpolations
    "rule.f=${workers.g}": "rule.f: Interpolation key 'workers.g' not found",
    "workers.f=${server.f}": "workers.f: Recursive interpolation detected",
    # types
    "train.steps=many": "train.steps = 'many': must be an integer",
    "train.steps=1.5": "train.steps = 1.5: must be an integer",
    "train.steps=true": "train.steps = True: must be an integer",
    "train.steps.x=1": "train.steps = {'x': 1}: must be an integer",
    "train.lr=null": "train.lr = None: must be a number",
    "train.lr=nan": "train.lr = 'nan': must be a number",
    "train.full_batch=1": "train.full_batch = 1: must be true or false",
    "train.loss=mse": "train.loss = 'mse': must be one of auto, nll, cross_entropy",
    "train.lr_milestones=5": "train.lr_milestones = 5: must be a list of integers",
    "train.lr_milestones=[a]": "train.lr_milestones = ['a']: must be a list of integers",
    "data.root=[a]": "data.root = ['a']: must be text or null",
    "clip.zeta=high": "clip.zeta = 'high': must be a number",
    "rule.f=1.5": "rule.f = 1.5: must be an integer",
    "model.hidden=3": "model.hidden = 3: must be a list of integers",
    # domains
    "seed=-1": "seed = -1: must be at least 0",
    "train.steps=0": "train.steps = 0: must be at least 1",
    "train.lr=0": "train.lr = 0: must be greater than 0",
    "train.lr=.inf": "train.lr = inf: must be finite and greater than 0",
    "train.momentum=1": "train.momentum = 1: must be at least 0 and less than 1",
    "train.weight_decay=-1e-4": "train.weight_decay = -0.0001: must be at least 0",
    "train.lr_milestones=[0]": "train.lr_milestones = [0]: each must be at least 1",
    "train.eval_every=0": "train.eval_every = 0: must be at least 1",
    "workers.batch_size=0": "workers.batch_size = 0: must be at least 1",
    "workers.honest=0": "workers.honest = 0: must be at least 1",
    "workers.f=-1": "workers.f = -1: must be at least 0",
    "model.init_scale=0": "model.init_scale = 0: must be greater than 0",
    "clip.zeta=3": "clip=arc: ARC: zeta must be a number in [0, 2], got 3.0",
    "rule.f=-1": "rule=cwtm: CWTM: f must be an int >= 0, got -1",
    "partition=dirichlet partition.alpha=0": (
        "partition=dirichlet: Dirichlet: alpha must be a number in (0, inf], got 0.0"
    ),
    "model.hidden=[0]": "model=mlp: mlp: each width in hidden must be an int >= 1, got 0",
    # between keys
    "clip=static": "clip.C is missing: clip=static has no default for it",
    "workers.f=10": (
        "workers.f = 10: must satisfy 2 f < n, and n = 20 (workers.honest = 10, workers.f = 10)"
    ),
    "server.f=6": (
        "server.f = 6: must satisfy 2 f < n, and n = 11 (workers.honest = 10, workers.f = 1)"
    ),
    "rule.f=6": (
        "rule.f = 6: must satisfy 2 f < n, and n = 11 (workers.honest = 10, workers.f = 1)"
    ),
    "rule=mda workers.honest=30 workers.f=9": (
        "rule=mda: MDA: f=9 of n=39 rows means 211,915,132 subsets, more than the 200,000 that are "
        "searched; take a smaller f or n, or another rule"
    ),
    "rule=smea workers.honest=30 workers.f=9": (
        "rule=smea: SMEA: f=9 of n=39 rows means 211,915,132 subsets, more than the 50,000 that "
        "are searched; take a smaller f or n, or another rule"
    ),
    "rule=monna rule.pivot=11": (
        "rule=monna: MoNNA: pivot must be one of the rows 0 to n - 1, got pivot=11, n=11 rows"
    ),
    "mix=bucketing mix.s=3 workers.f=3": (
        "rule=cwtm: CWTM: f must satisfy 2f < n, got f=3, n=5 rows"
    ),
    "attack=mimic attack.worker=-1": ("attack=mimic: Mimic: worker must be an int >= 0, got -1"),
    "attack=mimic attack.worker=first": ("attack.worker = 'first': must be an integer or null"),
    "attack=mimic attack.worker=10": (
        "attack=mimic: Mimic: worker must be one of the 10 honest workers, 0 to 9, got 10"
    ),
    "attack=foe workers.f=0": (
        "attack=foe: needs at least one Byzantine worker, and workers.f = 0; must be attack=none"
    ),
    "train.lr_milestones=[3,2]": "train.lr_milestones = [3, 2]: must be increasing",
    "train.lr_values=[0.1]": (
        "train.lr_values = [0.1]: must have one value for each of train.lr_milestones = [], "
        "or be empty"
    ),
    "model=resnet18 train.loss=nll": (
        "train.loss = 'nll': needs log-probabilities, and model=resnet18 returns logits; "
        "must be cross_entropy or auto"
    ),
    "trainer.callbacks=[mine]": (
        "trainer.callbacks: 'mine' must be a dotted path such as my_module.MyCallback, "
        "or a mapping of name (the dotted path) and constructor arguments"
    ),
}


@pytest.mark.parametrize("overrides", CASES)
def test_message(overrides: str) -> None:
    with pytest.raises(BadRequest) as raised:
        compose(overrides.split(" "))
    assert str(raised.value) == CASES[overrides]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            "model={}.WrongShape",
            "model={}.WrongShape: returns (2, 1, 28, 4) for two images, must be (2, 10)",
        ),
        (
            "dataset=cifar10 model={}.WrongShape",
            "model={}.WrongShape: does not take images of shape (3, 32, 32): "
            "mat1 and mat2 shapes cannot be multiplied (192x32 and 28x4)",
        ),
        ("model={}.NoModel", "model={}.NoModel: must be a torch.nn.Module class"),
        ("rule={}.PickyRule", "rule.strength is missing: rule={}.PickyRule has no default for it"),
        (
            "rule={}.PickyRule rule.strength=2",
            "rule={}.PickyRule: PickyRule: strength must be at most 1, got 2.0",
        ),
        (
            "rule={}.PickyRule rule.strenght=1",
            "unknown key 'strenght' of rule={}.PickyRule: did you mean 'strength'?",
        ),
    ],
)
def test_message_about_a_users_class(user_module: str, overrides: str, message: str) -> None:
    with pytest.raises(BadRequest) as raised:
        compose(overrides.format(user_module).split(" "))
    assert str(raised.value) == message.format(user_module)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "train: {step: 5}",
            "configs/mine.yaml: unknown key 'step' in train: did you mean 'steps'?",
        ),
        ("trian: {steps: 5}", "configs/mine.yaml: unknown key 'trian': did you mean 'train'?"),
        (
            "train: 5",
            "configs/mine.yaml: train = 5: train is a section, set its keys, such as train.steps",
        ),
        ("- 5", "configs/mine.yaml: a config file is a mapping of keys to values"),
    ],
)
def test_message_about_a_file(write: Callable[[str, str], Path], text: str, message: str) -> None:
    write("mine.yaml", text)
    with pytest.raises(BadRequest) as raised:
        compose(["config=configs/mine.yaml"])
    assert str(raised.value) == message


def test_file_that_is_not_yaml(write: Callable[[str, str], Path]) -> None:
    write("mine.yaml", "train: {steps: 5")
    with pytest.raises(BadRequest, match=r"^configs/mine.yaml is not a valid YAML file: [^\n]+$"):
        compose(["config=configs/mine.yaml"])


def test_misspelt_experiment_names_the_nearest(write: Callable[[str, str], Path]) -> None:
    write("experiment/zebra_study.yaml", "seed: 2")
    with pytest.raises(
        BadRequest, match=r"^unknown experiment 'zebrastudy': did you mean 'zebra_study'"
    ):
        compose(["experiment=zebrastudy"])
