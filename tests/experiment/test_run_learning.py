"""What training must learn, and a trace of it that guards refactorings."""

import pytest

from lit_byz import TrainResult, train

# From a run in float64. A change that is meant to leave the results alone leaves these alone; one
# that changes them (another attack search, another draw of batches) writes down the new ones.
TRACE = {
    "train/loss": [
        *(2.3035248, 2.3047112, 2.2980071, 2.2925191, 2.2964539),
        *(2.3442583, 2.4151336, 2.4232065, 2.4424887, 2.4549151),
    ],
    "arc/threshold": [
        *(0.69589058, 1.2973611, 1.8494384, 2.3111224, 2.7894229),
        *(3.2511055, 3.8107247, 4.2947028, 4.7691044, 5.1867837),
    ],
    "attack/factor": [
        *(4.4274584, 4.7482728, 4.8159094, 4.6259279, 4.4741403),
        *(4.4118978, 4.6178174, 4.7313637, 4.682701, 4.5208222),
    ],
    "attack/damage": [
        *(0.15270348, 0.28688374, 0.40896083, 0.52355989, 0.66201541),
        *(0.82212695, 0.9842139, 1.1232734, 1.2700949, 1.3757096),
    ],
    "server/output_norm": [
        *(0.036214912, 0.05623321, 0.08261237, 0.161094, 0.21490456),
        *(0.27743727, 0.3291577, 0.37311978, 0.39807378, 0.41164369),
    ],
    "test/accuracy": [0.10364146, 0.098039216],
}


def learn(*settings: str, gradients: str = "loop") -> TrainResult:
    return train(["tracking.enabled=false", f"train.gradients={gradients}", *settings])


@pytest.mark.parametrize("gradients", ["loop", "joined", "vmap"])
def test_trace(gradients: str) -> None:
    result = learn(
        *("trainer.precision=64-true", "model=mlp", "model.hidden=[16]", "attack=foe"),
        *("workers.f=2", "train.steps=10", "train.eval_every=5"),
        *("train.lr=0.3", "train.lr_milestones=[6]"),
        gradients=gradients,
    )
    for key, expected in TRACE.items():
        found = [value for _, value in result.history[key]]
        assert found == pytest.approx(expected, rel=1e-5), key


@pytest.mark.parametrize("attack", ["foe", "sf"])
def test_clipping_saves_training(attack: str) -> None:
    """Extreme heterogeneity, one attacker among eleven: the paper's main claim, on the digits."""
    shared = [f"attack={attack}", "model=mlp", "train.steps=40", "train.eval_every=10"]
    clipped = learn(*shared, "train.lr=0.3", "clip=arc")
    bare = learn(*shared, "train.lr=0.3", "clip=none")
    assert clipped.accuracy > 0.7
    assert clipped.accuracy > bare.accuracy + 0.2
    assert clipped.max_accuracy > bare.max_accuracy
    assert bare.accuracy < 0.2 or attack == "sf"


def test_plain_dsgd_learns() -> None:
    result = learn(
        *("workers.f=0", "rule=average", "clip=none", "mix=none"),
        *("train.steps=60", "train.eval_every=20"),
    )
    assert result.max_accuracy > 0.9
    losses = [loss for _, loss in result.history["train/loss"]]
    assert losses[-1] < 0.3 * losses[0]
    assert max(damage for _, damage in result.history["attack/damage"]) < 1e-5
