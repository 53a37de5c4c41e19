"""What the attackers know: the server's whole step, or something they take it for."""

from dataclasses import replace

import pytest
import torch

from lit_byz.attacks import ALIE, FOE, SearchedAttack
from lit_byz.errors import BadRequest
from lit_byz.robust import (
    ARC,
    CWTM,
    NNM,
    CWMed,
    GeometricMedian,
    MultiKrum,
    NoClip,
    RobustAggregator,
)
from tests._each import each
from tests.attacks._audit import honest_vectors

H, F = 9, 2
X = honest_vectors("heterogeneous", H, 200)
SERVER = RobustAggregator(CWTM(F), clip=ARC(F), mix=NNM(F))
both = pytest.mark.parametrize("attack", [FOE, ALIE])


def damage(server: RobustAggregator, sent: torch.Tensor, f: int = F) -> float:
    output = server(torch.cat([X, sent.expand(f, -1)]))
    return float((output.double() - X.double().mean(0)).norm())


@both
@each("name, rule", [("multi_krum", MultiKrum(F)), ("cwmed", CWMed()), ("gm", GeometricMedian())])
def test_assumed_rule(attack: type[SearchedAttack], name: str, rule: object) -> None:
    """The same as facing that rule, with the server's own clip and mix."""
    assumed, _ = attack(assumed_rule=name).move(X, F, SERVER)
    facing, _ = attack().move(X, F, replace(SERVER, rule=rule))
    assert (assumed.factor, assumed.damage) == (facing.factor, facing.damage)
    assert torch.equal(assumed.vector(), facing.vector())


@both
def test_assumed_clip(attack: type[SearchedAttack]) -> None:
    assumed, _ = attack(assumed_clip="none").move(X, F, SERVER)
    facing, _ = attack().move(X, F, replace(SERVER, clip=NoClip()))
    assert (assumed.factor, assumed.damage) == (facing.factor, facing.damage)
    both_assumed, _ = attack(assumed_rule="cwmed", assumed_clip="arc").move(
        X, F, RobustAggregator(MultiKrum(F), mix=NNM(F))
    )
    facing, _ = attack().move(X, F, RobustAggregator(CWMed(), clip=ARC(F), mix=NNM(F)))
    assert both_assumed.factor == facing.factor


@both
@each("assumed", ["average", "cwmed", "krum", "gm"])
def test_knowing_is_no_worse_than_assuming(attack: type[SearchedAttack], assumed: str) -> None:
    known = damage(SERVER, attack()(X, F, SERVER))
    guessed = damage(SERVER, attack(assumed_rule=assumed)(X, F, SERVER))
    assert known >= 0.999 * guessed


@both
@each("declared", [1, 3, 4])
@each("real", [1, 2, 4])
def test_declared_f_may_differ_from_the_real_one(
    attack: type[SearchedAttack], declared: int, real: int
) -> None:
    """Real attackers send, the server removes as many as it was told."""
    server = RobustAggregator(CWTM(declared), clip=ARC(declared), mix=NNM(declared))
    move, _ = attack().move(X, real, server)
    assert move.damage == pytest.approx(damage(server, move.vector(), real), rel=1e-5)
    assert move.damage >= damage(server, attack(tau=1.0)(X, real, server), real)


def test_more_attackers_than_declared_do_more_damage() -> None:
    server = RobustAggregator(CWTM(1), clip=ARC(1), mix=NNM(1))
    found = [FOE().move(X, real, server)[0].damage or 0.0 for real in (1, 2, 4)]
    assert found == sorted(found)
    assert found[-1] > 1.5 * found[0]


def test_an_assumed_rule_gets_the_declared_f() -> None:
    """The attackers know f̂, wherever the server says it."""
    for server in (
        RobustAggregator(CWTM(3)),
        RobustAggregator(CWMed(), clip=ARC(3)),
        RobustAggregator(CWMed(), mix=NNM(3)),
    ):
        assumed, _ = FOE(assumed_rule="multi_krum").move(X, 1, server)
        facing, _ = FOE().move(X, 1, replace(server, rule=MultiKrum(3)))
        assert assumed.factor == facing.factor
    assumed, _ = FOE(assumed_rule="multi_krum").move(X, F, RobustAggregator(CWMed()))
    facing, _ = FOE().move(X, F, RobustAggregator(MultiKrum(F)))
    assert assumed.factor == facing.factor


def test_a_clip_that_needs_more_than_f_cannot_be_assumed() -> None:
    with pytest.raises(BadRequest, match="cannot assume clip 'static' from f alone"):
        FOE(assumed_clip="static")(X, F, SERVER)


def test_an_assumed_rule_must_be_able_to_work() -> None:
    with pytest.raises(ValueError, match=r"CWTM: f must satisfy 2f < n, got f=9, n=18"):
        FOE(assumed_rule="cwtm")(X, 9, RobustAggregator(CWMed()))


@each("argument", ["assumed_rule", "assumed_clip"])
def test_unknown_names(argument: str) -> None:
    with pytest.raises(ValueError, match="cwtn"):
        FOE(**{argument: "cwtn"})
