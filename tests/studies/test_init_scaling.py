"""The study of initialisation: its runs, the initial gradients, resume, bad requests."""

from pathlib import Path
from typing import Any

import pytest
import torch

from lit_byz.experiment.config import compose
from lit_byz.experiment.grid import Grid, read_grid
from lit_byz.experiment.init_scaling import (
    initial_gradient_norms,
    is_dsgd,
    method_of,
    problem_of,
    scale_of,
    study_points,
)
from lit_byz.experiment.run import make_module
from tests.experiment import _studies

GRID: dict[str, Any] = {
    "dataset": "digits",
    "model": "logreg",
    "workers": {"honest": 5, "f": 1, "batch_size": 8},
    "train": {"steps": 12, "eval_every": 6},
    "grid": {
        "axes": {
            "model.init_scale": [1, 3],
            "clip": ["none", "arc"],
            "attack": ["sf", "lf"],
            "seed": [1],
        }
    },
}
PIPELINE = "init_scaling"


@pytest.mark.parametrize(
    "settings",
    [
        ["model=mlp", "model.init_scale=2", "train.weight_decay=0.1"],
        ["model=logreg", "model.init_scale=3", "train.weight_decay_mode=worker"],
        ["model=logreg", "partition=iid", "train.local_steps=2", "train.lr_milestones=[5,9]"],
    ],
)
def test_initial_gradients_are_those_of_a_plain_loop(settings: list[str]) -> None:
    config = compose(["workers.honest=4", "seed=3", *settings])
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
    assert initial_gradient_norms(config) == pytest.approx(expected, rel=1e-4)


def test_dsgd_joins_for_every_scale_and_seed() -> None:
    grid = Grid(
        {k: v for k, v in GRID.items() if k != "grid"},
        axes={**GRID["grid"]["axes"], "partition": ["iid", "extreme"], "seed": [1, 2]},
    )
    found = study_points(grid)
    baselines = [point for point in found if is_dsgd(point)]
    assert len(found) == 2 * (16 + 4)
    assert len(baselines) == 8
    assert {(scale_of(p), p.seed) for p in baselines} == {(1, 1), (1, 2), (3, 1), (3, 2)}
    assert {problem_of(p) for p in baselines} == {"partition=iid", "partition=extreme"}
    for point in baselines:
        config = point.config
        names = (config.rule.name, config.clip.name, config.mix.name, config.attack.name)
        assert names == ("average", "none", "none", "none")
    assert {method_of(p) for p in found} == {
        f"{name}, partition={partition}"
        for name in ("no clipping", "ARC", "DSGD")
        for partition in ("iid", "extreme")
    }


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
    assert len(list(read_grid([], name).values())) == scales * seeds * 2 * 5
    found = study_points(read_grid(["seed=1", "attack=foe"], name))
    assert len(found) == scales * (2 + 1)
    config = found[0].config
    assert (config.partition.name, config.rule.name, config.mix.name) == (partition, "cwtm", "nnm")
    assert (config.workers.honest, config.workers.f) == (10, 1)
    if "mnist" in name:
        assert (config.model.name, config.train.steps) == ("cnn_mnist", 1000)
        assert {scale_of(p) for p in found} == {1, 2, 3, 4, 5}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, _studies.answer(folder, PIPELINE, GRID)


def test_table_norms_and_files(undisturbed: tuple[Path, dict[str, Any]]) -> None:
    folder, found = undisturbed
    assert [(row["method"], row["mu"]) for row in found["worst_cases"]] == [
        (method, mu) for method in ("no clipping", "ARC", "DSGD") for mu in (1.0, 3.0)
    ]
    assert all(0 <= row["worst_case"]["mean"] <= 1 for row in found["worst_cases"])
    gradients = {(g["mu"], g["seed"]): g for g in found["initial_gradients"]}
    assert set(gradients) == {(1.0, 1), (3.0, 1)}
    assert all(g["largest"] >= g["mean"] > 0 for g in gradients.values())
    assert found["power_of_mu"][""] is not None
    assert (folder / "outputs" / "init_scaling.png").stat().st_size > 5000
    assert "initial_gradient_largest" in (folder / "outputs" / "init_scaling.csv").read_text()
    stored = _studies.query(
        folder, "select distinct key from latest_metrics where key like 'initial_gradient/%'"
    )
    assert {key for (key,) in stored} == {
        "initial_gradient/power",
        "initial_gradient/seed_1/largest",
        "initial_gradient/seed_1/mean",
    }


def test_again_computes_nothing(undisturbed: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = undisturbed
    before = _studies.finished(folder)
    again = _studies.run(folder, PIPELINE, GRID)
    assert again.code == 0
    assert again.stderr == ""  # no run, no gradient
    assert f"ζ grows as μ^{expected['power_of_mu']['']:.2f}" in again.stdout
    assert _studies.finished(folder) == before


def test_killed_and_resumed(undisturbed: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    _studies.kill_after(4, tmp_path, PIPELINE, GRID)
    assert _studies.answer(tmp_path, PIPELINE, GRID) == undisturbed[1]
    finished = _studies.finished(tmp_path)
    assert len(finished) == len(set(finished)) == 10


def test_dry_run_and_bad_requests_compute_nothing(tmp_path: Path) -> None:
    planned = _studies.run(tmp_path, PIPELINE, GRID, "--dry-run")
    assert "10 runs: 6 cells, 3 attacks, 1 seeds" in planned.stdout
    assert "estimated from a few measured steps" in planned.stdout
    for setting in ("model.init_scale=[1,-2]", "clip=[none,ark]", "model.init_scal=[1,2]"):
        refused = _studies.run(tmp_path, PIPELINE, GRID, setting)
        assert refused.code == 2
        assert refused.stderr.count("\n") == 1
    assert _studies.query(tmp_path, "select count(*) from runs") == [(0,)]
