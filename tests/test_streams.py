"""Random numbers: one stream for each use, and what was drawn from a seed is drawn for ever."""

import ast
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import lit_byz
from lit_byz import _streams
from lit_byz._streams import UNNUMBERED, Stream, numpy_generator, torch_generator
from lit_byz.attacks import GaussianNoise, Scene
from lit_byz.data import PARTITIONS, ImageData, RawImages, WorkerBatches
from lit_byz.models import initialise
from lit_byz.robust import Average, Basis, Bucketing, Geometry, RobustAggregator
from lit_byz.training import RobustDSGD, TrainSettings
from lit_byz.training._stochastic import WorkerLayers, replace_dropout

SEED = 5
LABELS = np.arange(12) % 3
NUMBERED = [stream for stream in Stream if stream not in UNNUMBERED]
# What makes random numbers of a seed, by the last part of its name.
MAKERS = {"default_rng", "SeedSequence", "RandomState", "Generator", "manual_seed"}
MAKERS |= {"manual_seed_all", "seed_everything", "PCG64"}


def test_streams_are_pairwise_different() -> None:
    assert len({int(stream) for stream in Stream.__members__.values()}) == len(Stream.__members__)
    for one, other in itertools.combinations(NUMBERED, 2):
        draws = [numpy_generator(SEED, stream, 7).random(4) for stream in (one, other)]
        assert not (draws[0] == draws[1]).any(), (one, other)
        draws = [torch.rand(4, generator=torch_generator(SEED, s, 7)) for s in (one, other)]
        assert not (draws[0] == draws[1]).any(), (one, other)


def test_no_stream_joins_those_without_a_number() -> None:
    assert {stream.name for stream in UNNUMBERED} == {
        *("BUCKETS", "INITIAL", "LAYERS", "MIMIC"),
        *("NOISE", "BAD_INPUTS", "DIGITS", "BENCHMARKS"),
    }


def test_nothing_else_makes_random_numbers_of_a_seed() -> None:
    package = Path(lit_byz.__file__).parent
    found = []
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", None))
                if name in MAKERS:
                    found.append((path.relative_to(package).as_posix(), name))
    assert {path for path, _ in found} == {Path(_streams.__file__).name}, found


def test_every_stream_has_a_use() -> None:
    package = Path(lit_byz.__file__).parent
    sources = [path.read_text() for path in package.rglob("*.py") if path.name != "_streams.py"]
    unused = [s.name for s in Stream if not any(f"Stream.{s.name}" in text for text in sources)]
    assert not unused


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("iid", {}, [[0, 1, 4, 9], [3, 7, 10, 11], [2, 5, 6, 8]]),
        ("dirichlet", {"alpha": 1.0}, [[0, 1, 4, 6, 8, 9, 10], [3, 7], [2, 5, 11]]),
        ("gamma", {"gamma": 0.5}, [[0, 1, 3, 6], [2, 4, 5, 9], [7, 8, 10, 11]]),
    ],
)
def test_partitions(name: str, settings: dict[str, float], expected: list[list[int]]) -> None:
    parts = PARTITIONS[name](**settings)(LABELS, 3, SEED)
    assert [part.tolist() for part in parts] == expected


@pytest.fixture
def batches() -> WorkerBatches:
    images = np.zeros((12, 1, 2, 2), np.uint8)
    raw = RawImages(images, LABELS, images, LABELS)
    data = ImageData(raw, mean=(0.0,), std=(1.0,), random_flip=True)
    return WorkerBatches(data, [np.arange(6), np.arange(6, 12)], 4, SEED)


def test_batches_and_flips(batches: WorkerBatches) -> None:
    assert batches.indices(3).tolist() == [[4, 1, 0, 2], [6, 10, 7, 8]]
    flips = batches.flips(3)
    assert flips is not None
    assert flips.int().tolist() == [[0, 0, 1, 1], [0, 1, 0, 0]]


def test_random_iterate(batches: WorkerBatches) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    settings = TrainSettings(steps=1000)
    server = RobustAggregator(Average())
    assert RobustDSGD(model, server, settings=settings, seed=SEED).iterate_step == 714


def test_initial_parameters() -> None:
    weight = initialise(lambda: nn.Linear(2, 1), SEED).weight.detach()
    torch.testing.assert_close(weight, torch.tensor([[0.467047, -0.528759]]), atol=1e-6, rtol=0)


def test_noise() -> None:
    scene = Scene(Basis(torch.eye(4)), 1, RobustAggregator(Average()), step=7)
    noise = GaussianNoise(seed=SEED).act(scene, {}).vector()
    expected = torch.tensor([-0.7255, 0.9472, 0.9971, -0.6612])
    torch.testing.assert_close(noise, expected, atol=1e-4, rtol=0)


def test_buckets() -> None:
    matrix = Bucketing(2, seed=SEED).matrix(Geometry(Basis(torch.eye(4))), step=7)
    assert matrix.tolist() == [[0.0, 0.5, 0.0, 0.5], [0.5, 0.0, 0.5, 0.0]]


def test_dropout_masks() -> None:
    model = nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.5))
    replace_dropout(model)
    masks = WorkerLayers(model, torch.zeros(1, 1)).buffers(SEED, 7, workers=1, batch=1)
    assert masks["1.mask"].flatten().tolist() == [0, 0, 0, 0, 0, 0, 2, 2]


def test_layers_that_draw_on_their_own() -> None:
    with torch.random.fork_rng(devices=[]):
        _streams.seed_torch(SEED, Stream.LAYERS, 7)
        drawn = torch.rand(2)
        torch.manual_seed(5_000_022)
        assert torch.equal(drawn, torch.rand(2))


def test_the_largest_seed_has_streams_too() -> None:
    largest = 2**63 - 1
    for stream in Stream:
        first, second = (torch_generator(largest, stream, step) for step in (10**6, 10**6 + 1))
        assert first.initial_seed() != second.initial_seed()
    assert torch_generator(3, Stream.NOISE, 5).initial_seed() == 3 * 1_000_003 + 5
