"""A step on a device that is not the processor: what it waits for, and where it makes its tensors.

There need not be a GPU: the device is pretended, and holds what a GPU would hold.
"""

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import nn

from lit_byz.attacks import ALIE, FOE, Attack, LabelFlip, Mimic, Scene, SignFlip, Span
from lit_byz.data import PARTITIONS, ImageData, WorkerBatches
from lit_byz.models import MODELS
from lit_byz.robust import (
    ARC,
    CWTM,
    NNM,
    Average,
    Basis,
    CWMed,
    GeometricMedian,
    MeaMed,
    MultiKrum,
    RobustAggregator,
    Rule,
)
from lit_byz.training._flat import FlatParameters
from lit_byz.training._serve import serve
from lit_byz.training._stochastic import WorkerLayers
from lit_byz.training._task import Task
from lit_byz.training._workers import HonestWorkers
from lit_byz.training.gradients import METHODS
from tests.training._far import FAR, Far, Visit, far_model, visiting
from tests.training._setup import digits

# How often a step may wait for the device, whatever n and d are, by rule and attack: a rule that
# works on inner products needs these, the length of its output and little more; one that works on
# coordinates is asked anew whenever a search goes on.
GEOMETRIC, COORDINATE = "inner products", "coordinates"
BUDGET = {
    (GEOMETRIC, "sf"): 3,
    (GEOMETRIC, "lf"): 3,
    (GEOMETRIC, "mimic"): 8,
    (GEOMETRIC, "foe"): 3,
    (GEOMETRIC, "foe@coarse"): 3,
    (GEOMETRIC, "alie"): 4,
    (GEOMETRIC, "span"): 5,
    (COORDINATE, "sf"): 3,
    (COORDINATE, "lf"): 3,
    (COORDINATE, "mimic"): 8,
    (COORDINATE, "foe"): 10,
    (COORDINATE, "foe@coarse"): 4,
    (COORDINATE, "alie"): 11,
    (COORDINATE, "span"): 50,
}
RULES: dict[str, tuple[str, Callable[[int], Rule]]] = {
    "average": (GEOMETRIC, lambda f: Average()),
    "gm": (GEOMETRIC, lambda f: GeometricMedian()),
    "multi_krum": (GEOMETRIC, MultiKrum),
    "cwtm": (COORDINATE, CWTM),
    "cwmed": (COORDINATE, lambda f: CWMed()),
    "meamed": (COORDINATE, MeaMed),
}
ATTACKS: dict[str, Callable[[], Attack]] = {
    "sf": SignFlip,
    "lf": LabelFlip,
    "mimic": Mimic,
    "foe": FOE,
    "foe@coarse": lambda: FOE(search="coarse"),
    "alie": ALIE,
    "span": lambda: Span(budget=1000),
}
QUICK = [("gm", "sf"), ("gm", "lf"), ("gm", "mimic"), ("gm", "foe"), ("cwtm", "mimic")]
# A vector's length; no dimension of a search's small matrices comes near it.
LARGE = 60_000


def waits_of_a_step(rule: Rule, attack: Attack, h: int, f: int, d: int) -> Visit:
    """What the second of two steps asks for: the first one may set things up."""
    server = RobustAggregator(rule, clip=ARC(f), mix=NNM(f))
    draw = torch.Generator().manual_seed(1)
    state: dict[str, torch.Tensor] = {}
    for step in range(2):
        vectors = torch.randn(h + 1, d, generator=draw)
        flipped = torch.randn(d, generator=draw)
        with visiting(LARGE) as visit:
            buffer = Far(vectors)
            scene = Scene(Basis(buffer[:-1]), f, server, step, Far(flipped), buffer)
            output, _, _ = serve(scene, attack, state, 0.0)
            assert isinstance(output, Far)
    return visit


@pytest.mark.parametrize(
    ("rule", "attack"),
    [
        pytest.param(rule, attack, marks=[] if (rule, attack) in QUICK else pytest.mark.slow)
        for rule in RULES
        for attack in ATTACKS
    ],
)
def test_a_step_seldom_waits_for_the_device(rule: str, attack: str) -> None:
    kind, make = RULES[rule]
    for h, f, d in ((6, 1, LARGE), (14, 3, LARGE), (6, 1, 3 * LARGE)):
        seen = waits_of_a_step(make(f), ATTACKS[attack](), h, f, d)
        assert seen.waits <= BUDGET[kind, attack], (h, d, seen.asked)
        assert seen.made_near == []


@pytest.mark.parametrize(
    "attack", ["sf", "foe", "alie", pytest.param("span", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("rule", ["cwtm", "gm"])
def test_the_result_is_the_processors(rule: str, attack: str) -> None:
    """The pretended device computes what it is asked for: same attack, same output."""
    vectors = torch.randn(8, 3000, generator=torch.Generator().manual_seed(2))
    made = RULES[rule][1](1)
    server = RobustAggregator(made, clip=ARC(1), mix=NNM(1))
    near = Scene(Basis(vectors[:-1]), 1, server, 0, None, vectors.clone())
    expected, seen, _ = serve(near, ATTACKS[attack](), {}, 0.0)
    with visiting(LARGE):
        buffer = Far(vectors.clone())
        far = Scene(Basis(buffer[:-1]), 1, server, 0, None, buffer)
        output, found, _ = serve(far, ATTACKS[attack](), {}, 0.0)
    assert found.damage == pytest.approx(seen.damage, rel=1e-3)
    assert isinstance(output, Far)
    if attack == "sf":
        torch.testing.assert_close(output.near, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture
def _no_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pretended device has no mixed precision to switch off."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())


def far_workers(make: Callable[[], nn.Module], h: int) -> tuple[HonestWorkers, torch.Tensor]:
    model = far_model(make)
    raw = digits()
    images = ImageData.__new__(ImageData)
    vars(images).update(vars(raw))
    parts = PARTITIONS["iid"]()(raw.train_labels, h, 1)
    images.to(FAR)
    batches = WorkerBatches(images, parts, 4, seed=1)
    example, _ = images.train_batch(torch.zeros(1, dtype=torch.long))
    flat = FlatParameters(model)
    task = Task(model, nn.functional.nll_loss, flat, WorkerLayers(model, example))
    return HonestWorkers(task, batches, seed=1, momentum=0.9), torch.zeros(h, flat.size, device=FAR)


@pytest.mark.usefixtures("_no_autocast")
@pytest.mark.parametrize("flip", [None, 10])
@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("name", ["cnn_mnist", "mlp"])
def test_gradients_wait_for_nothing(name: str, method: str, flip: int | None) -> None:
    for h in (2, 5):
        with visiting(LARGE) as visit:
            workers, rows = far_workers(MODELS[name], h)
            visit.asked.clear()
            visit.made_near.clear()
            losses, flipped = workers.update(rows, 1, method, flip)
            assert isinstance(losses, Far)
            assert flipped is None if flip is None else isinstance(flipped, Far)
        assert visit.waits == 0, visit.asked
        assert visit.made_near == []


def test_the_watch_sees_what_it_should() -> None:
    """A step that waits, mixes devices or makes its tensors on the processor is found out."""
    with visiting(100) as visit:
        x = Far(torch.arange(6.0))
        _ = float(x.sum())
        _ = x.cpu()
        assert bool((x > 1).any())
        assert visit.waits == 3
        _ = torch.zeros(200)
        _ = torch.zeros(200, device=FAR)
        assert [shape for _, shape in visit.made_near] == [(200,)]
        with pytest.raises(RuntimeError, match="two devices"):
            _ = x + torch.ones(6)
        assert isinstance(x + torch.tensor(2.0), Far)
