"""The study of initialisation: its runs, and the one-step runs of its initial gradients."""

from typing import Any

import pytest
import torch

from lit_byz.config.compose import compose
from lit_byz.config.grid import Grid, points
from lit_byz.config.grid_source import read_grid
from lit_byz.execution.assemble import make_module
from lit_byz.execution.run import train
from lit_byz.studies.init_scaling import (
    gradient_point,
    is_dsgd,
    make_init_scaling,
    method_of,
    problem_of,
    scale_of,
    study_points,
)
from tests.studies._simulate import BASE, simulate

AXES: dict[str, Any] = {
    "model.init_scale": [1, 3],
    "clip": ["none", "arc"],
    "attack": ["sf", "lf"],
    "seed": [1],
}


@pytest.mark.parametrize(
    "settings",
    [
        ["model=mlp", "model.init_scale=2", "train.weight_decay=0.1"],
        ["model=logreg", "model.init_scale=3", "train.weight_decay_mode=worker"],
        ["model=logreg", "partition=iid", "train.local_steps=2", "train.lr_milestones=[5,9]"],
    ],
)
def test_initial_gradients_are_those_of_a_plain_loop(settings: list[str]) -> None:
    every = ["workers.honest=4", "seed=3", "tracking.enabled=false", *settings]
    config = compose(every)
    module = make_module(config)
    expected = []
    for worker in range(4):
        parts = list(module.batches.worker(worker))
        x, y = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
        module.model.zero_grad()
        torch.nn.functional.nll_loss(module.model(x), y).backward()
        decay = config.train.weight_decay if config.train.weight_decay_mode == "worker" else 0.0
        gradients = [p.grad + decay * p.detach() for p in module.model.parameters()]
        expected.append(float(torch.cat([g.flatten() for g in gradients]).norm()))
    quiet = read_grid([*every, "workers.f=0", "clip=none", "mix=none", "rule=average"], "")
    (dsgd,) = points(quiet)
    history = train(gradient_point(dsgd).plain).history
    assert history["honest/max_norm"][0][1] == pytest.approx(max(expected), rel=1e-4)
    assert history["honest/average_norm"][0][1] == pytest.approx(sum(expected) / 4, rel=1e-4)


def test_dsgd_joins_for_every_scale_and_seed() -> None:
    grid = Grid(BASE, axes={**AXES, "partition": ["iid", "extreme"], "seed": [1, 2]})
    found = study_points(grid)
    baselines = [point for point in found if is_dsgd(point)]
    assert len(found) == 2 * (16 + 4)
    assert len(baselines) == 8
    assert {(scale_of(p), p.seed) for p in baselines} == {(1, 1), (1, 2), (3, 1), (3, 2)}
    assert {problem_of(p) for p in baselines} == {"partition=iid", "partition=extreme"}
    for point in baselines:
        names = [point.plain[group]["name"] for group in ("rule", "clip", "mix", "attack")]
        assert names == ["average", "none", "none", "none"]
    assert {method_of(p) for p in found} == {
        f"{name}, partition={partition}"
        for name in ("no clipping", "ARC", "DSGD")
        for partition in ("iid", "extreme")
    }


def test_cells_know_their_method_and_scale() -> None:
    found = study_points(Grid(BASE, axes={**AXES, "seed": [1, 2]}))
    study = make_init_scaling(found)
    asked = simulate(study, lambda point: 0.5)
    assert len(asked) == len(found) + 4  # the initial gradients of two scales and two seeds
    kinds = [cell.kind for cell in study.board.cells.values()]
    assert kinds == ["cell"] * 6 + ["initial_gradients"] * 2
    places = [(c.facts.get("method"), c.facts["scale"]) for c in study.board.cells.values()]
    assert places[:2] == [("no clipping", 1.0), ("ARC", 1.0)]
    assert places[4:] == [("DSGD", 1.0), ("DSGD", 3.0), (None, 1.0), (None, 3.0)]
    assert all(p.plain["train"]["steps"] == 1 for p in asked[len(found) :])


def test_axes_over_arguments_go_with_their_component() -> None:
    grid = Grid(axes={"clip": ["static"], "clip.C": [1.0, 2.0], "attack": ["sf"]})
    found = study_points(grid)
    assert [method_of(p) for p in found] == ["static, clip.C=1.0", "static, clip.C=2.0", "DSGD"]


def test_dsgd_joins_a_single_run() -> None:
    assert [method_of(p) for p in study_points(Grid({"clip": "arc"}))] == ["ARC", "DSGD"]


@pytest.mark.parametrize(
    ("name", "partition", "scales", "seeds"),
    [
        ("init_scaling_digits", "extreme", 6, 2),
        ("init_scaling_mnist", "extreme", 5, 5),
        ("init_scaling_mnist_dirichlet", "dirichlet", 5, 5),
    ],
)
def test_experiment_files(name: str, partition: str, scales: int, seeds: int) -> None:
    settings = [f"experiment={name}"]
    assert len(list(read_grid(settings, "").values())) == scales * seeds * 2 * 5
    found = study_points(read_grid([*settings, "seed=1", "attack=foe"], ""))
    assert len(found) == scales * (2 + 1)
    config = found[0].config
    assert (config.partition.name, config.rule.name, config.mix.name) == (partition, "cwtm", "nnm")
    assert (config.workers.honest, config.workers.f) == (10, 1)
    if "mnist" in name:
        assert (config.model.name, config.train.steps) == ("cnn_mnist", 1000)
        assert {scale_of(p) for p in found} == {1, 2, 3, 4, 5}
