"""What a command says about its runs before it begins: only what holds for all of them."""

from lit_byz.cli.many_runs import make_record
from lit_byz.cli.plan import describe
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


def test_what_is_tuned_is_neither() -> None:
    space = ["tune.space.rule.choices=[cwtm,gm]", "tune.space.workers.f.choices=[1,2]"]
    problem = read_problem([*BASE, *space], "none")
    plain = [point.without(list(problem.space)) for point in problem.reference()]
    shared, *_ = describe(plain, tuned=list(problem.space))
    assert "f = " not in shared
    assert "cwtm" not in shared
    record = make_record("tuning", "a study", problem.reference(), among=problem.at_ends())
    assert record.facts["cell"] == "digits, extreme"
