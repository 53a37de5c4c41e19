"""The study of initialisation as a command: table, gradients, resume, bad requests."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli import _studies

GRID: dict[str, Any] = {
    "dataset": "digits",
    "model": "logreg",
    "tracking": {"figures": False},
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
    power = "select value from latest_metrics where key = 'initial_gradient/power'"
    assert _studies.query(folder, power) == [(found["power_of_mu"][""],)]


@pytest.mark.slow
def test_again_computes_nothing(undisturbed: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = undisturbed
    before = _studies.finished(folder)
    again = _studies.run(folder, PIPELINE, GRID)
    assert again.code == 0
    text = " ".join(again.stdout.split())
    assert ": 12 runs, 2 of them for the initial gradients" in text
    assert "0 runs computed now, 12 reused" in again.stdout
    assert f"ζ grows as μ^{expected['power_of_mu']['']:.2f}" in again.stdout
    assert _studies.finished(folder) == before


@pytest.mark.slow
def test_killed_and_resumed(undisturbed: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    _studies.kill_after(4, tmp_path, PIPELINE, GRID)
    counts = ("computed", "reused")
    found = {k: v for k, v in _studies.answer(tmp_path, PIPELINE, GRID).items() if k not in counts}
    assert found == {k: v for k, v in undisturbed[1].items() if k not in counts}
    finished = _studies.finished(tmp_path)
    assert len(finished) == len(set(finished)) == 12


def test_dry_run_and_bad_requests_compute_nothing(tmp_path: Path) -> None:
    planned = _studies.run(tmp_path, PIPELINE, GRID, "--dry-run")
    assert "12 runs: 8 cells, 3 attacks, 1 seed" in planned.stdout
    assert "estimated from " in planned.stdout
    for setting in ("model.init_scale=[1,-2]", "clip=[none,ark]", "model.init_scal=[1,2]"):
        refused = _studies.run(tmp_path, PIPELINE, GRID, setting)
        assert refused.code == 2
        assert refused.stderr.count("\n") == 1
    assert _studies.query(tmp_path, "select count(*) from runs") == [(0,)]
