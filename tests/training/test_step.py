"""Training steps against a naive loop over workers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lit_byz.attacks import FOE, Attack, LabelFlip, Mimic, SignFlip
from lit_byz.robust import ARC, CWTM, NNM, Average, CWMed, MultiKrum, RobustAggregator, StaticClip
from lit_byz.training import RobustDSGD, TrainSettings
from tests.robust import _reference as reference
from tests.training import _naive
from tests.training._models import make
from tests.training._naive import Array, Naive
from tests.training._setup import Watch, make_batches, run, simulation

F = 1


def robust(x: Array) -> Array:
    """CWTM ∘ NNM ∘ ARC."""
    return reference.cwtm(reference.nnm(reference.arc(x, F), F), F)[0]


def mimicking() -> _naive.Attack:
    """Mimic's own heuristic is tested with the attacks: here, who is copied when."""
    attack, state = Mimic(warmup=2, seed=5), {}

    def act(honest: Array, flipped: Array, step: int) -> Array:
        torch.set_default_dtype(torch.float64)  # as the trainer does; the attack draws in it
        try:
            return attack(honest, f=F, state=state, step=step)
        finally:
            torch.set_default_dtype(torch.float32)

    return act


ATTACKS: dict[str, tuple[Callable[[], Attack], Callable[[], _naive.Attack]]] = {
    "sf": (SignFlip, lambda: lambda honest, flipped, step: -honest.mean(0)),
    "foe": (lambda: FOE(tau=3.0), lambda: lambda honest, flipped, step: -2.0 * honest.mean(0)),
    "lf": (LabelFlip, lambda: lambda honest, flipped, step: flipped),
    "mimic": (lambda: Mimic(warmup=2, seed=5), mimicking),
}
RULES: dict[str, tuple[RobustAggregator, _naive.Server]] = {
    "cwtm∘nnm∘arc": (RobustAggregator(CWTM(F), clip=ARC(F), mix=NNM(F)), robust),
    "cwmed": (RobustAggregator(CWMed()), lambda x: reference.cwmed(x)[0]),
    "multi_krum∘static": (
        RobustAggregator(MultiKrum(F), clip=StaticClip(0.5)),
        lambda x: reference.multi_krum(reference.clip_at(x, 0.5), F)[0],
    ),
    "average": (RobustAggregator(Average()), lambda x: x.mean(0)),
}


def masks_of(module: RobustDSGD) -> Callable[[int], list[Tensor]]:
    def masks(number: int) -> list[Tensor]:
        workers = module._workers
        assert workers is not None
        shape = (module.batches.workers, module.batches.batch_size)
        stacked = workers.task.layers.buffers(module.seed, number, *shape)
        return [value for name, value in stacked.items() if name.endswith(".mask")]

    return masks


def compare(module: RobustDSGD, naive: Naive, tolerance: float = 1e-9) -> Watch:
    """Train both; parameters after every step, momentums, losses and statistics must agree."""
    watch = Watch()
    precision: Any = "64-true" if tolerance < 1e-6 else "32-true"
    run(module, precision, [watch])
    for step in range(module.settings.steps):
        output = naive.step(step)
        expected = naive.theta()
        found = watch.parameters[step].double().numpy()
        scale = np.abs(expected).max()
        assert np.abs(found - expected).max() < tolerance * scale, f"parameters, step {step}"
        honest = np.stack(naive.momentums)
        apart = np.abs(watch.honest[step].double().numpy() - honest).max()
        assert apart < tolerance * np.abs(honest).max(), f"momentums, step {step}"
        seen = watch.observed[step]
        assert seen.step == step
        if module.settings.local_steps == 1:
            assert seen.loss == pytest.approx(naive.losses[step], rel=max(tolerance, 1e-6))
        assert seen.output_norm == pytest.approx(float(np.linalg.norm(output)), rel=1e-4)
        damage = np.linalg.norm(output - honest.mean(0))
        assert seen.damage == pytest.approx(float(damage), rel=1e-3, abs=1e-9)
    ours = dict(module.model.named_buffers())
    for name, theirs in naive.model.named_buffers():
        if "running" in name:
            assert torch.allclose(ours[name].double(), theirs, atol=tolerance, rtol=tolerance), name
    return watch


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("rule", RULES)
def test_attacks_and_rules(attack: str, rule: str) -> None:
    server, naive_server = RULES[rule]
    make_ours, make_naive = ATTACKS[attack]
    settings: dict[str, Any] = {"steps": 4, "lr": 0.2, "weight_decay": 0.0}
    module = simulation(make("mlp"), make_ours(), server=server, **settings)
    naive = Naive(
        make("mlp"),
        make_batches(),
        naive_server,
        make_naive(),
        f=F,
        lr=lambda step: 0.2,
    )
    watch = compare(module, naive)
    for seen in watch.observed:
        assert (seen.factor == 3.0) if attack == "foe" else (seen.factor is None)
        assert np.isfinite(seen.threshold) == ("∘arc" in rule or "static" in rule)


@pytest.mark.parametrize("mode", ["server", "worker"])
@pytest.mark.parametrize("model", ["cnn_mnist", "normed", "normed_dropping", "dropping", "odd"])
def test_models_and_weight_decay(model: str, mode: str) -> None:
    batches = make_batches(workers=4, size=3)
    settings: dict[str, Any] = {"steps": 2, "weight_decay": 0.05, "weight_decay_mode": mode}
    module = simulation(make(model), LabelFlip(), batches=batches, gradients="loop", **settings)
    naive = Naive(
        make(model),
        batches,
        robust,
        ATTACKS["lf"][1](),
        f=F,
        weight_decay=0.05,
        decay_at=mode,
        masks=masks_of(module) if "dropping" in model else None,
    )
    compare(module, naive)


@pytest.mark.parametrize(
    "gradients", ["joined", *(pytest.param(g, marks=pytest.mark.slow) for g in ("loop", "vmap"))]
)
def test_float32(gradients: str) -> None:
    batches = make_batches(workers=4, size=3)
    settings: dict[str, Any] = {"steps": 3, "weight_decay": 1e-2, "gradients": gradients}
    module = simulation(make("cnn_mnist"), SignFlip(), batches=batches, **settings)
    naive = Naive(make("cnn_mnist"), batches, robust, ATTACKS["sf"][1](), f=F, weight_decay=1e-2)
    compare(module, naive, tolerance=1e-5)


def test_plain_dsgd() -> None:
    server = RobustAggregator(Average())
    module = simulation(make("mlp"), f=0, server=server, steps=5, momentum=0.9, weight_decay=1e-3)
    naive = Naive(make("mlp"), make_batches(), lambda x: x.mean(0), weight_decay=1e-3)
    watch = compare(module, naive)
    assert all(seen.damage < 1e-9 for seen in watch.observed)
    assert all(seen.clipped_byzantine == 0 for seen in watch.observed)


@pytest.mark.parametrize("model", ["mlp", pytest.param("normed", marks=pytest.mark.slow)])
def test_robust_dgd(model: str) -> None:
    """Full batches, no momentum: the paper's Algorithm 1."""
    settings: dict[str, Any] = {"steps": 2, "momentum": 0.0, "full_batch": True}
    batches = make_batches(workers=10)  # 144 points each, in one piece
    module = simulation(make(model), LabelFlip(), batches=batches, weight_decay=0.0, **settings)
    naive = Naive(
        make(model),
        batches,
        robust,
        ATTACKS["lf"][1](),
        f=F,
        momentum=0.0,
        full_batch=True,
    )
    compare(module, naive)


def test_full_batches_in_pieces() -> None:
    """More points than fit into one piece of a full batch give the mean over all of them."""
    batches = make_batches(workers=1)
    assert len(list(batches.worker(0))) == 2
    server = RobustAggregator(Average())
    settings: dict[str, Any] = {"steps": 1, "momentum": 0.0, "full_batch": True}
    module = simulation(make("mlp"), f=0, server=server, batches=batches, **settings)
    compare(
        module,
        Naive(
            make("mlp"),
            batches,
            lambda x: x.mean(0),
            momentum=0.0,
            full_batch=True,
            weight_decay=1e-4,
        ),
    )


@pytest.mark.parametrize("mode", ["server", "worker"])
@pytest.mark.parametrize("model", ["mlp", "normed_dropping", "odd"])
def test_local_steps(model: str, mode: str) -> None:
    settings: dict[str, Any] = {"steps": 2, "local_steps": 3, "local_lr": 0.05, "momentum": 0.5}
    decay: dict[str, Any] = {"weight_decay": 0.02, "weight_decay_mode": mode}
    module = simulation(make(model), LabelFlip(), **settings, **decay)
    naive = Naive(
        make(model),
        make_batches(),
        robust,
        ATTACKS["lf"][1](),
        f=F,
        momentum=0.5,
        local_steps=3,
        local_lr=0.05,
        weight_decay=0.02,
        decay_at=mode,
        masks=masks_of(module) if "dropping" in model else None,
    )
    compare(module, naive)


def test_federated_averaging() -> None:
    """With γ = η L and no momentum the server averages the workers' models."""
    batches, local_lr, local_steps = make_batches(), 0.1, 4
    settings: dict[str, Any] = {"momentum": 0.0, "weight_decay": 0.0, "local_steps": local_steps}
    module = simulation(
        make("mlp"),
        f=0,
        server=RobustAggregator(Average()),
        batches=batches,
        steps=1,
        lr=local_lr * local_steps,
        local_lr=local_lr,
        **settings,
    )
    run(module)
    models = []
    for worker in range(batches.workers):
        model = make("mlp").double()
        optimizer = torch.optim.SGD(model.parameters(), lr=local_lr)
        for number in range(local_steps):
            x, y = batches.round(number)
            optimizer.zero_grad()
            torch.nn.functional.nll_loss(model(x[worker].double()), y[worker]).backward()
            optimizer.step()
        models.append(torch.nn.utils.parameters_to_vector(model.parameters()).detach())
    assert torch.allclose(module.flat.gather(), torch.stack(models).mean(0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ({"lr": 0.4, "lr_milestones": [1, 3]}, [0.4, 0.04, 0.04, 0.004]),
        ({"lr": 0.4, "lr_milestones": [2], "lr_decay": 0.5}, [0.4, 0.4, 0.2, 0.2]),
        ({"lr": 0.05, "lr_milestones": [1, 2], "lr_values": [0.3, 0.1]}, [0.05, 0.3, 0.1, 0.1]),
        ({"lr": 0.05}, [0.05] * 4),
    ],
)
def test_schedules(schedule: dict[str, Any], rates: list[float]) -> None:
    settings = TrainSettings(steps=4, **schedule)
    assert [settings.lr_at(step) for step in range(4)] == pytest.approx(rates)
    module = simulation(make("logreg"), SignFlip(), steps=4, weight_decay=0.0, **schedule)
    naive = Naive(
        make("logreg"),
        make_batches(),
        robust,
        ATTACKS["sf"][1](),
        f=F,
        lr=lambda step: rates[step],
    )
    compare(module, naive)
