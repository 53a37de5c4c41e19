"""The numbers of an initialisation study: from Python as the command writes them."""

from pathlib import Path

import pandas as pd
import pytest

import lit_byz
from lit_byz.config.as_typed import as_typed
from tests.cli.test_functions import settings


def test_initial_gradients_are_those_of_the_commands_csv(tmp_path: Path) -> None:
    """Each of its own data and model, also below a method with further axes, and by seed."""
    from lit_byz.cli import init_scaling

    axes = {"model": ["logreg", "mlp"], "rule": ["cwtm", "gm"], "model.init_scale": [1, 3]}
    grid = settings(tmp_path, clip="arc", attack="sf", seed=[1, 2])
    grid = {**grid, **axes, "train": {"steps": 1, "eval_every": 1}}
    found = lit_byz.init_scaling(grid, executor="inline")
    words = [*as_typed(grid), "--executor", "inline", "--progress", "none"]
    assert init_scaling.main([*words, "--out", str(tmp_path / "out")]) == 0
    written = pd.read_csv(tmp_path / "out" / "init_scaling.csv")
    assert len(found) == 2 * 2 * (2 + 1)
    for name in ("initial_gradient_largest", "initial_gradient_mean"):
        rows = written[written["what"] == name]
        means = rows.groupby(["method", "mu"])["value"].mean()
        assert means.is_unique
        assert len(means) == 4
        for row in found.to_dict("records"):
            problem = f"model={row['model']}"
            assert row[name] == pytest.approx(means[problem, row["scale"]], abs=1e-12)
        by_seed = found.runs.dropna(subset=name)
        assert sorted(by_seed[name]) == pytest.approx(sorted(rows["value"]), abs=1e-12)
        assert len(by_seed) == 2 * 2 * 2
    worst = written[written["what"] == "worst_case"].query("seed == 'mean'")
    ends = worst.set_index(["method", "mu"])["mean_last_5"]
    for row in found.to_dict("records"):
        assert row["mean_last_5"] == pytest.approx(ends[row["method"], row["scale"]], abs=1e-12)
