"""What a command says about its runs before it begins: only what holds for all of them."""

import argparse

from lit_byz.cli.many_runs import make_record
from lit_byz.cli.plan import describe, spans
from lit_byz.config.grid import points
from lit_byz.config.grid_source import read_grid
from lit_byz.config.search_space import read_problem

BASE = ["dataset=digits", "model=logreg", "attack=sf"]


def described(*settings: str) -> list[str]:
    return describe(points(read_grid([*BASE, *settings], "none")))


def test_what_varies_is_not_shared() -> None:
    settings = ["partition=dirichlet", "partition.alpha=[0.1,1]", "clip=static", "clip.C=[1,2]"]
    shared, varies = described(*settings)
    assert shared.startswith("shared: digits, dirichlet, logreg, ")
    assert "clip static, sf, " in shared
    assert varies == "varies: partition.alpha 0.1, 1; clip.C 1, 2"


def test_what_a_data_set_brings_with_it_varies_too() -> None:
    """Its model and training: a reader of the axes alone would not know that they differ."""
    grid = read_grid(["dataset=[mnist,cifar10]", "clip=[none,arc]", "workers.f=[1,2]"], "none")
    shared, varies, brought = describe(points(grid))
    assert "cnn" not in shared + varies
    assert brought.startswith(
        "with the data set: partition extreme, dirichlet; model cnn_mnist, cnn_cifar; "
        "workers.honest 10, 16; "
    )
    assert "train.lr 0.1, 0.05" in brought
    assert "momentum" not in brought
    same = ["dataset=[mnist,fashion_mnist]", "model=[logreg,mlp]", "attack=[sf,foe]"]
    assert len(describe(points(read_grid(same, "none")))) == 2


def test_what_is_the_same_is_named_with_its_values() -> None:
    settings = ["partition=dirichlet", "partition.alpha=0.1", "clip=static", "clip.C=2"]
    shared, *_ = described(*settings)
    assert shared.startswith("shared: digits, dirichlet 0.1, logreg, ")
    assert "cwtm∘nnm, clip static 2, sf, " in shared


def test_what_the_server_takes_f_for_is_said_where_it_is_wrong() -> None:
    assert ", f = 2, cwtm" in described("workers.f=2")[0]
    assert ", f = 2, server.f = 1, cwtm" in described("workers.f=2", "server.f=1")[0]
    assert ", f = 2, rule.f = 1, cwtm" in described("workers.f=2", "rule.f=1")[0]
    both = described("workers.f=2", "server.f=1", "clip=arc", "clip.f=2")
    assert ", f = 2, server.f = 1, clip.f = 2, cwtm" in both[0]


def test_what_is_not_as_it_would_be_by_itself() -> None:
    assert [line for line in described("workers.f=2", "seed=[3,4]") if "default" in line] == []
    settings = ["train.lr=0.01", "workers.batch_size=3", "server.f=2", "clip.zeta=[0.5,1]"]
    shared, apart, varies = described(*settings, "server.bound_output=true", "rule=gm", "rule.nu=2")
    # train.local_lr, which follows, and what is said in the other lines, are left out.
    told = "workers.batch_size = 3, rule.nu = 2.0, server.bound_output = True, train.lr = 0.01"
    assert apart == f"not the default: {told}"
    assert ", f = 1, server.f = 2, gm∘nnm, " in shared
    assert varies == "varies: clip.zeta 0.5, 1"


def test_it_is_said_too_where_the_real_number_varies() -> None:
    shared, varies = described("workers.f=[1,3]", "server.f=1")
    assert ", 10 honest workers, server.f = 1, cwtm" in shared
    assert varies == "varies: workers.f 1, 3"
    assert ", clip.f = 1, cwtm" in described("workers.f=[1,3]", "clip=arc", "clip.f=1")[0]
    for followed in (["workers.f=[1,3]"], ["workers.f=3", "server.f=[1,2]"]):
        assert ".f = " not in described(*followed)[0]


def test_what_is_tuned_is_neither() -> None:
    space = ["tune.space.rule.choices=[cwtm,gm]", "tune.space.workers.f.choices=[1,2]"]
    problem = read_problem([*BASE, *space], "none")
    plain = [point.without(list(problem.space)) for point in problem.reference()]
    shared, *_ = describe(plain, tuned=list(problem.space))
    assert "f = " not in shared
    assert "cwtm" not in shared
    record = make_record("tuning", "a study", problem.reference(), among=problem.at_ends())
    assert record.facts["cell"] == "digits, extreme"


def test_no_run_is_divided_among_processes() -> None:
    options = argparse.Namespace(executor="processes", workers=8)
    assert spans(60.0, options, 1, 60.0) == "60 s of one process"
    assert spans(60.0, options, 3, 40.0) == "60 s of one process, 40 s with 3"
    assert spans(60.0, options, 30, 4.0) == "60 s of one process, 8 s with 8"
