"""Bad configs, each with the one line that a user gets."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lit_byz.config.compose import compose
from lit_byz.errors import BadRequest

NO_RULE = "must derive from lit_byz.robust.Rule"
NO_NAME = (
    "is the name of a folder too, so it must have no / or \\ and no .. in it, "
    "nor a dot or a space at its ends"
)
CASES = {
    # misspelt names, at every level
    "trian.steps=5": "unknown key 'trian': did you mean 'train'?",
    "steps=5": "unknown key 'steps': did you mean 'train.steps'?",
    "atack=foe": "unknown key 'atack': did you mean 'attack'?",
    "train.step=5": "unknown key 'step' in train: did you mean 'steps'?",
    "workers.qqqq=5": "unknown key 'qqqq' in workers: there is batch_size, f, honest",
    "rule=geometric_median": "unknown rule 'geometric_median': did you mean 'gm'?",
    "rule=median": "unknown rule 'median': did you mean 'cwmed' or 'gm' or 'meamed'?",
    "attack=sign_flip": "unknown attack 'sign_flip': did you mean 'sf'?",
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
    "rule=lit_byz.robust.CWTN": (
        "rule 'lit_byz.robust.CWTN': lit_byz.robust has no 'CWTN'; did you mean 'CWTM'?"
    ),
    "rule=lit_byz.robust.vectors.as_rows": (
        "rule 'lit_byz.robust.vectors.as_rows' is a function, not a class that derives from "
        "lit_byz.robust.Rule"
    ),
    "rule=.Rule": "rule '.Rule': must be a dotted path such as my_module.MyClass",
    "rule=collections.OrderedDict": f"rule 'collections.OrderedDict': {NO_RULE}",
    "rule=subprocess.Popen rule.args=[ls]": f"rule 'subprocess.Popen': {NO_RULE}",
    "rule=lit_byz.robust.ARC": f"rule 'lit_byz.robust.ARC': {NO_RULE}",
    "rule=lit_byz.robust.Rule": f"rule 'lit_byz.robust.Rule': {NO_RULE}",
    "clip=lit_byz.robust.CWTM": (
        "clip 'lit_byz.robust.CWTM': must derive from lit_byz.robust.Clip"
    ),
    "trainer.callbacks=[subprocess.Popen]": (
        "callback 'subprocess.Popen': must derive from lightning.pytorch.callbacks.Callback"
    ),
    "trainer.callbacks=[{name: lit_byz.training.DissimilarityLogger, evry: 5}]": (
        "trainer.callbacks: lit_byz.training.DissimilarityLogger: "
        "got an unexpected keyword argument 'evry'"
    ),
    # how settings are written
    "train.steps": "'train.steps': settings are written as key=value, such as seed=2",
    "train.steps:5": "'train.steps:5': settings are written as key=value, such as seed=2",
    "train.lr_milestones=[1": (
        "train.lr_milestones: '[1' is not valid YAML: did not find expected ',' or ']'"
    ),
    "train=5": "train = 5: train is a section, set its keys, such as train.steps",
    "seed=1 seed.x=2": "seed.x: 'seed' is a value, not a section",
    "rule=5": "rule = 5: must be the name of an option or a dotted path",
    "rule=null": "rule = None: must be the name of an option or a dotted path",
    "config=nowhere.yaml": "cannot read nowhere.yaml: No such file or directory",
    "config=5": "config = 5: must be text",
    "attack={0}": "attack: '{0}' has the key 0, which is no text",
    "seed=!!int 'x'": "seed: '!!int 'x'' has 'x' for !!int",
    "seed=!!timestamp 2025-01-01": (
        "seed: '!!timestamp 2025-01-01' has the tag !!timestamp; "
        "there are only texts, numbers, lists, mappings"
    ),
    # interpolations
    "rule.f=${workers.g}": "rule.f: ${workers.g} is no key of this config",
    "workers.f=${server.f}": "workers.f: ${server.f} leads in a circle",
    "train.steps=${nothing}": "train.steps: ${nothing} is no key of this config",
    "data.root=${oc.env:HOME}": (
        "data.root = '${oc.env:HOME}': must be a value, or refer to another key as ${seed} does"
    ),
    "data.root=\\${seed": (
        "data.root = '\\\\${seed': must be a value, or refer to another key as ${seed} does"
    ),
    "data.root=???": "data.root = '???': must be a value, or refer to another key as ${seed} does",
    "trainer.callbacks=['${trainer.callbacks}']": (
        "trainer.callbacks: ${trainer.callbacks} leads in a circle"
    ),
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
    "seed=9223372036854775808": (
        "seed: '9223372036854775808' has the integer 9223372036854775808; integers must be between "
        "-9223372036854775807 and 9223372036854775807"
    ),
    "train.weight_decay=1e300": (
        "train.weight_decay = 1e+300: must be at most 3.4e+38, as in 32 bits"
    ),
    "train.lr=1e39": "train.lr = 1e+39: must be at most 3.4e+38, as in 32 bits",
    "model.init_scale=1e39": "model.init_scale = 1e+39: must be at most 3.4e+38, as in 32 bits",
    "train.lr_milestones=[1] train.lr_values=[1e39]": (
        "train.lr_values = 1e+39: must be at most 3.4e+38, as in 32 bits"
    ),
    "attack=gaussian attack.scale=1e39": (
        "attack.scale = 1e+39: must be at most 3.4e+38, as in 32 bits"
    ),
    "train.local_steps=2 train.local_lr=1e-39": (
        "train.local_lr = 1e-39: must be at least 2.94e-39"
    ),
    "model.hidden=[9999999999]": (
        "model=mlp: has 7,949,999,999,215 parameters, must have at most 2,147,483,647"
    ),
    "tracking.experiment=../../../x": f"tracking.experiment = '../../../x': {NO_NAME}",
    "tracking.experiment=a/b": f"tracking.experiment = 'a/b': {NO_NAME}",
    "tracking.experiment=a\\b": f"tracking.experiment = 'a\\\\b': {NO_NAME}",
    "tracking.experiment=..": f"tracking.experiment = '..': {NO_NAME}",
    "tracking.experiment=''": f"tracking.experiment = '': {NO_NAME}",
    "tracking.uri=postgresql://me:***@host/db": (
        "tracking.uri = postgresql://me:***@host/db: the password was left out where this was "
        "printed; write it, or set MLFLOW_TRACKING_URI"
    ),
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
    "mix=bucketing mix.s=100": "mix.s = 100: must be at most n = 11, the number of workers",
    "mix=bucketing mix.s=9": ("rule=cwtm: CWTM: f must satisfy 2f < n, got f=1, n=2 rows"),
    "rule=mda workers.honest=40 workers.f=15": (
        "rule=mda: MDA: f=15 of n=55 rows means "
        "11,899,700,525,790 subsets, more than the 200,000 that are searched; take a smaller f or "
        "n, or another rule"
    ),
    "rule=mda workers.honest=6000000 workers.f=4000000": (
        "rule=mda: MDA: f=4000000 of "
        "n=10000000 rows means at least 416,666,416,666,712,499,997,500,000 subsets, more than the "
        "200,000 that are searched; take a smaller f or n, or another rule"
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

# Those with a space in them.
WORDS = {text: [text] for text in CASES if text.startswith(("seed=!!", "trainer.callbacks=[{"))}


@pytest.mark.parametrize("overrides", CASES)
def test_message(overrides: str) -> None:
    with pytest.raises(BadRequest) as raised:
        compose(WORDS.get(overrides, overrides.split(" ")))
    assert str(raised.value) == CASES[overrides]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            "model={}.WrongShape",
            "model={}.WrongShape: returns (2, 1, 28, 4) for two images, must be a tensor of shape "
            "(2, 10)",
        ),
        (
            "dataset=cifar10 model={}.WrongShape",
            "model={}.WrongShape: does not take images of shape (3, 32, 32): "
            "mat1 and mat2 shapes cannot be multiplied (192x32 and 28x4)",
        ),
        (
            "model={}.NoModel",
            "model '{}.NoModel': must derive from torch.nn.Module",
        ),
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
    write("mine.yaml", "seed: 1\ntrain: steps: 5\n")
    with pytest.raises(BadRequest, match=r"^configs/mine.yaml: is not valid YAML: [^\n]+ line 2"):
        compose(["config=configs/mine.yaml"])


def test_misspelt_experiment_names_the_nearest(write: Callable[[str, str], Path]) -> None:
    write("experiment/zebra_study.yaml", "seed: 2")
    with pytest.raises(
        BadRequest, match=r"^unknown experiment 'zebrastudy': did you mean 'zebra_study'"
    ):
        compose(["experiment=zebrastudy"])
