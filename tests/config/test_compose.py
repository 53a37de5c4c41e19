"""What a config is made of: layers, groups, interpolations, and back again."""

import math
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf
from omegaconf.errors import ReadonlyConfigError

from lit_byz.config.components import GROUPS, build, build_model, options, registry
from lit_byz.config.compose import compose, to_plain
from lit_byz.errors import BadRequest

Write = Callable[[str, str], Path]
NEEDED = {("clip", "static"): ["clip.C=1"]}


def test_defaults_are_the_quick_ones() -> None:
    config = compose()
    names = {group: config[group].name for group in GROUPS}
    assert names["dataset"] == "digits"
    assert names["partition"] == "extreme"
    assert (names["clip"], names["mix"], names["rule"]) == ("arc", "nnm", "cwtm")
    assert names["attack"] == "foe"
    assert (config.workers.honest, config.workers.f, config.seed) == (10, 1, 1)


@pytest.mark.parametrize("group", GROUPS)
def test_every_option_of_every_group_composes_and_builds(group: str) -> None:
    for option in options(group):
        config = compose([f"{group}={option}", *NEEDED.get((group, option), [])])
        shaped = {"shape": (1, 28, 28), "classes": 10} if group == "model" else {}
        assert isinstance(
            build(group, config[group], **shaped), registry(group)[config[group].name]
        )


def test_declared_f_follows_the_real_one_unless_it_is_set() -> None:
    def declared(*overrides: str) -> list[int]:
        config = compose(overrides)
        return [config.workers.f, config.server.f, config.clip.f, config.mix.f, config.rule.f]

    assert declared("workers.f=3") == [3, 3, 3, 3, 3]
    assert declared("workers.f=3", "server.f=2") == [3, 2, 2, 2, 2]
    assert declared("workers.f=3", "rule.f=1") == [3, 3, 3, 3, 1]
    assert declared("server.f=0") == [1, 0, 0, 0, 0]


def test_seed_arguments_follow_the_seed() -> None:
    assert compose(["mix=bucketing", "seed=7"]).mix.seed == 7
    assert compose(["mix=bucketing", "seed=7", "mix.seed=3"]).mix.seed == 3


def test_attackers_momentum_follows_the_workers() -> None:
    assert compose(["attack=lf", "train.momentum=0.5"]).attack.beta == 0.5
    assert compose(["attack=lf", "train.momentum=0", "attack.beta=0.7"]).attack.beta == 0.7


def test_values_take_the_types_of_their_arguments() -> None:
    config = compose(["clip=static", "clip.C=2", "train.lr=1", "tracking.experiment=2024"])
    assert isinstance(config.clip.C, float)
    assert isinstance(config.train.lr, float)
    assert config.tracking.experiment == "2024"
    assert math.isinf(compose(["clip=static", "clip.C=.inf"]).clip.C)
    assert math.isinf(compose(["clip=static", "clip.C=inf"]).clip.C)


def test_order_of_the_command_line() -> None:
    assert compose(["rule.f=2", "rule=krum", "workers.f=2"]).rule == {"name": "krum", "f": 2}
    assert compose(["rule.name=krum"]).rule.name == "krum"
    assert compose(["seed=1", "seed=2"]).seed == 2
    assert compose(["rule={name: krum, f: 2}", "rule.f=3"]).rule == {"name": "krum", "f": 3}


def test_without_byzantine_workers_the_default_attack_gives_way() -> None:
    assert compose(["workers.f=0"]).attack.name == "none"
    assert compose(["workers.f=0", "attack=none"]).attack.name == "none"


def test_strength_of_a_searched_attack_by_name() -> None:
    short = compose(["attack=foe@published"])
    assert short == compose(["attack=foe", "attack.search=published"])
    assert short.attack.name == "foe"
    again = compose(beneath=to_plain(short))
    assert again == short
    with pytest.raises(
        BadRequest, match=r"^attack 'sf@published': sf has no search, so it must be sf$"
    ):
        compose(["attack=sf@published"])
    with pytest.raises(BadRequest, match=r"^attack=foe@line: sets search, and so does"):
        compose(["attack=foe@line", "attack.search=published"])


def test_loss_follows_the_model() -> None:
    assert compose(["model=mlp", "train.loss=auto"]).train.loss == "nll"
    assert compose(["model=resnet18", "train.loss=auto"]).train.loss == "cross_entropy"


def test_later_layers_win(write: Write) -> None:
    write(
        "dataset/small.yaml",
        """
        name: digits
        recommended:
          model: logreg
          workers: {honest: 4, batch_size: 5}
          train: {steps: 10, lr: 0.5}
        """,
    )
    write(
        "experiment/mine.yaml",
        """
        dataset: small
        train: {steps: 20}
        clip: {name: static, C: 2}
        """,
    )
    recommended = compose(["dataset=small"])
    assert (recommended.train.steps, recommended.train.lr) == (10, 0.5)
    assert (recommended.workers.honest, recommended.workers.f) == (4, 1)
    assert (recommended.model.name, recommended.clip.name) == ("logreg", "arc")
    assert "recommended" not in recommended.dataset
    experiment = compose(["experiment=mine"])
    assert (experiment.train.steps, experiment.train.lr) == (20, 0.5)
    assert experiment.clip == {"name": "static", "C": 2.0}
    top = compose(["experiment=mine", "train.steps=30", "model=mlp", "clip.C=3"])
    assert (top.train.steps, top.model.name, top.clip.C) == (30, "mlp", 3.0)


def test_choosing_an_option_leaves_no_argument_of_the_other(write: Write) -> None:
    write("experiment/mine.yaml", "mix: {name: bucketing, s: 3}\nrule: {f: 2}\nworkers: {f: 3}")
    assert compose(["experiment=mine"]).mix.s == 3
    assert compose(["experiment=mine"]).rule == {"name": "cwtm", "f": 2}
    changed = compose(["experiment=mine", "mix=nnm", "rule=cwtm"])
    assert changed.mix == {"name": "nnm", "f": 3}
    assert changed.rule == {"name": "cwtm", "f": 3}


def test_option_file_gives_arguments_to_a_class(write: Write) -> None:
    write("rule/gm_converged.yaml", "name: gm\niterations: 1000")
    config = compose(["rule=gm_converged", "rule.nu=0.2"])
    assert (config.rule.name, config.rule.iterations, config.rule.nu) == ("gm", 1000, 0.2)
    assert "gm_converged" in options("rule")


def test_named_folders_come_first(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("experiment/mine.yaml", "seed: 2")
    other = tmp_path / "elsewhere" / "experiment"
    other.mkdir(parents=True)
    (other / "mine.yaml").write_text("seed: 3")
    assert compose(["experiment=mine"]).seed == 2
    monkeypatch.setenv("LIT_BYZ_CONFIGS", str(other.parent))
    assert compose(["experiment=mine"]).seed == 3


def test_changed_file_is_read_again(write: Write) -> None:
    import os

    path = write("experiment/mine.yaml", "seed: 2")
    assert compose(["experiment=mine"]).seed == 2
    path.write_text("seed: 5")
    os.utime(path, ns=(1, 1))
    assert compose(["experiment=mine"]).seed == 5


def test_users_model_by_dotted_path(user_module: str) -> None:
    config = compose([f"model={user_module}.TinyModel", "model.width=4", "model.init_scale=2"])
    assert config.model == {"name": f"{user_module}.TinyModel", "width": 4, "init_scale": 2.0}
    assert config.train.loss == "cross_entropy"
    model = build("model", config.model, shape=(1, 28, 28), classes=10)
    assert model(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_users_rule_by_dotted_path(user_module: str) -> None:
    config = compose([f"rule={user_module}.PickyRule", "rule.strength=0.5", "workers.f=2"])
    rule = build("rule", config.rule)
    assert (rule.f, rule.strength) == (2, 0.5)


def test_model_of_a_config_comes_from_its_seed_and_scale() -> None:
    def weights(*overrides: str) -> torch.Tensor:
        return build_model(compose(["model=logreg", *overrides])).layers[1].weight

    assert torch.equal(weights("seed=3"), weights("seed=3", "train.steps=5"))
    assert torch.equal(weights("seed=3", "model.init_scale=2"), 2 * weights("seed=3"))
    assert not torch.equal(weights("seed=3"), weights("seed=4"))


def test_config_is_read_only_and_travels() -> None:
    config = compose(["train.lr_milestones=[5,6]"])
    with pytest.raises(ReadonlyConfigError):
        config.train.steps = 3
    assert pickle.loads(pickle.dumps(config)) == config


def test_plain_and_printed_configs_compose_to_themselves(tmp_path: Path) -> None:
    config = compose(
        ["clip=static", "clip.C=.inf", "workers.f=2", "train.lr=1e-5", "mix=bucketing"]
    )
    assert compose(beneath=to_plain(config)) == config
    assert compose(beneath=config) == config
    path = tmp_path / "printed.yaml"
    path.write_text(OmegaConf.to_yaml(config))
    assert compose([f"config={path}"]) == config
    assert compose([f"config={path}", "train.steps=7"]).train.steps == 7
