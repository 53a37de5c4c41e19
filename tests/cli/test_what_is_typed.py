"""A sweep trains what is typed: the same model, steps and workers as ``train.py`` would."""

import pytest
import yaml

from lit_byz.config.compose import compose_plain
from pipelines import breakdown, init_scaling, sweep

SHARED = ("dataset", "partition", "model", "workers", "rule", "mix", "train")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert sweep.main([*words, "--print-config"]) == 0, capsys.readouterr().err
    found: dict[str, object] = yaml.safe_load(capsys.readouterr().out)
    return found


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert sweep.main([*words, "--print-config"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    return said.err


def test_with_any_argument_the_base_is_that_of_train(capsys: pytest.CaptureFixture[str]) -> None:
    for settings in (["dataset=mnist"], ["train.lr=0.2"], ["dataset=cifar10", "partition=iid"]):
        found = printed(capsys, "clip=[none,arc]", *settings)
        del found["grid"]
        found, one = compose_plain(beneath=found), compose_plain(settings)
        assert {key: found[key] for key in SHARED} == {key: one[key] for key in SHARED}


def test_without_arguments_it_is_the_quickstart(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys) == printed(capsys, "experiment=quickstart")


def test_arguments_reach_the_options_that_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "clip=static", "clip.C=5")["clip"] == {"name": "static", "C": 5.0}
    grid = printed(capsys, "clip=[arc,static]", "clip.C=5")["grid"]
    assert grid == {"axes": {"clip.C": [5], "clip": ["arc", "static"]}}
    over_file = printed(capsys, "experiment=quickstart", "clip=[none,arc]")["grid"]
    assert over_file == {
        "axes": {"clip": ["none", "arc"], "attack": ["sf", "lf", "mimic", "foe", "alie"]}
    }


def test_what_no_option_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "clip=[none,arc]", "attack=[sf,foe]", "attack.nonsense=1")
    assert "attack.nonsense: no option of attack=[sf,foe] has it" in said
    assert "clip.zeta = 'apple': must be a number" in refused(
        capsys, "clip=[none,arc]", "clip.zeta=apple"
    )
    assert "clip.C is missing" in refused(capsys, "clip=[none,static,arc]", "dataset=mnist")
    for pipeline in (init_scaling, breakdown):
        assert pipeline.main(["clip=[none,arc]", "clip.zetta=1", "--print-config"]) == 2
        assert "did you mean 'zeta'?" in capsys.readouterr().err
