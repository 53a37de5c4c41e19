"""How strong the attack of a run is: the theory's bound, and the strongest attack beside it."""

import copy
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback

from lit_byz.attacks import ALIE, Attack, SignFlip, Span
from lit_byz.robust import RobustAggregator, StaticClip, theory
from lit_byz.training import AttackLogger, RobustDSGD, StrongestDamage
from tests.training._models import make
from tests.training._setup import Watch, arc_server, run, simulation

STEPS = 6
SMALL = Span(budget=400)


def module(attack: Attack | None, **more: Any) -> RobustDSGD:
    return simulation(make("mlp"), attack, steps=STEPS, **more)


class Recorded(Callback):
    """What another callback has to say about every step."""

    def __init__(self, logger: AttackLogger | StrongestDamage) -> None:
        self.logger = logger
        self.metrics: list[dict[str, float]] = []

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        self.metrics.append(self.logger.metrics(pl_module, pl_module.observed))


def test_the_bound_is_recorded() -> None:
    """The theory's, for what the honest workers sent; no attack goes beyond it."""
    for attack in (SignFlip(), ALIE(), SMALL):
        trained, recorded, watch = module(attack), Recorded(AttackLogger()), Watch()
        run(trained, callbacks=[recorded, watch])
        for seen, honest, metrics in zip(
            watch.observed, watch.honest, recorded.metrics, strict=True
        ):
            assert metrics["attack/bound"] == seen.bound
            assert seen.bound == pytest.approx(theory.damage_bound(arc_server(), honest, 1))
            assert metrics["attack/damage"] <= metrics["attack/bound"]


def test_no_theorem_no_bound() -> None:
    static = RobustAggregator(arc_server().rule, clip=StaticClip(1.0), mix=arc_server().mix)
    for trained in (module(SignFlip(), server=static), module(None, f=0, server=arc_server(0))):
        recorded = Recorded(AttackLogger())
        run(trained, callbacks=[recorded])
        assert all("attack/bound" not in metrics for metrics in recorded.metrics)


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(SignFlip(), id="sf"),
        pytest.param(ALIE(), id="alie", marks=pytest.mark.slow),
        pytest.param(SMALL, id="span", marks=pytest.mark.slow),
    ],
)
def test_training_does_not_notice_the_strongest_attack(attack: Attack) -> None:
    alone, beside = Watch(), Watch()
    run(module(attack), callbacks=[alone])
    recorded = Recorded(StrongestDamage(every=1, attack=SMALL))
    run(module(attack), callbacks=[recorded, beside])
    assert alone.observed == beside.observed
    for ours, expected in zip(beside.parameters, alone.parameters, strict=True):
        assert torch.equal(ours, expected)
    for seen, metrics in zip(beside.observed, recorded.metrics, strict=True):
        assert seen.damage <= metrics["attack/strongest_damage"] <= seen.bound


def test_every_so_often_and_only_if_there_are_attackers() -> None:
    recorded = Recorded(StrongestDamage(every=4, attack=SMALL))
    run(module(SignFlip()), callbacks=[recorded])
    assert [len(metrics) for metrics in recorded.metrics] == [1, 0, 0, 0, 1, 0]
    recorded = Recorded(StrongestDamage(every=1, attack=SMALL))
    run(module(None, f=0, server=arc_server(0)), callbacks=[recorded])
    assert not any(recorded.metrics)


@pytest.mark.slow
def test_the_strongest_attack_goes_on_from_its_state() -> None:
    whole = Recorded(StrongestDamage(every=1, attack=SMALL))
    run(module(SignFlip()), callbacks=[whole])

    class Interrupted(Recorded):
        """A new callback for every step, with the state of the one before."""

        def on_train_batch_end(self, *arguments: Any) -> None:
            state = copy.deepcopy(self.logger.state_dict())
            self.logger = StrongestDamage(every=1, attack=SMALL)
            self.logger.load_state_dict(state)
            super().on_train_batch_end(*arguments)

    parts = Interrupted(StrongestDamage(every=1, attack=SMALL))
    run(module(SignFlip()), callbacks=[parts])
    assert parts.metrics == whole.metrics


@pytest.mark.parametrize(
    "attack",
    [
        Span(budget=400, distinct=True),
        Span("drift", budget=400, flipped=True, memory=True, distinct=True),
        Span("descent", budget=400, flipped=True),
    ],
    ids=str,
)
def test_what_the_attackers_expect_is_what_the_server_does(attack: Span) -> None:
    trained, watch = module(attack, f=2, server=arc_server(2)), Watch()
    run(trained, callbacks=[watch])
    assert trained.sent is not None
    assert trained.sent.vector().dim() == (2 if attack.distinct else 1)
    assert watch.observed[-1].damage == pytest.approx(trained.sent.damage)
    assert all(seen.non_finite == 0 for seen in watch.observed)
