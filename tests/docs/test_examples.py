"""The examples do what their pages say."""

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lit_byz.data import WorkerBatches
from lit_byz.robust import CWMed, RobustAggregator
from tests.cli._documented import ROOT

EXAMPLES = ROOT / "examples"


def names_of(script: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / script))


def test_vectors_alone(capsys: pytest.CaptureFixture[str]) -> None:
    damages = names_of("numpy_vectors.py")["main"]()
    assert damages["average"] > 1000 > damages["cwtm"]
    assert damages["cwtm ∘ nnm ∘ arc"] < damages["cwtm ∘ nnm"]
    # What the page shows is what it prints.
    page = (ROOT / "docs" / "howto" / "vectors.md").read_text()
    (shown,) = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out == shown


def test_own_rules() -> None:
    """The same outputs in one piece and probed by an attack, and sane ones."""
    found = names_of("own_rule.py")
    x = torch.randn(12, 50, generator=torch.Generator().manual_seed(0)) + 1
    x[-2:] = -40.0
    for rule in (
        found["SoftKrum"](f=2, sharpness=8.0),
        found["MiddleHalf"](),
        found["CosineMean"](),
    ):
        output = RobustAggregator(rule)(x)
        assert (output - x[:10].mean(0)).norm() < (x[:10] - x[:10].mean(0)).norm(dim=1).mean()
    middle = found["MiddleHalf"]()(x.numpy())
    assert np.allclose(middle, np.sort(x.numpy(), axis=0)[3:9].mean(0), atol=1e-6)


def test_own_attacks() -> None:
    found = names_of("own_attack.py")
    honest = torch.tensor([[1.0, 0.0], [0.0, 3.0], [1.0, 1.0]])
    assert found["AgainstLongest"](factor=2.0)(honest, f=1).tolist() == [0.0, -6.0]
    sent = found["AgainstMedoid"](tau=1.0)(honest, f=1)
    assert torch.allclose(sent, honest.mean(0) - honest[2])
    searched = found["AgainstMedoid"]()
    server = RobustAggregator(CWMed())

    def damage(vector: torch.Tensor) -> float:
        return float((server(torch.cat([honest, vector[None]])) - honest.mean(0)).norm())

    assert damage(searched(honest, f=1, server=server)) >= damage(sent) - 1e-6


def test_own_data() -> None:
    data = names_of("own_dataset.py")["OddOrEven"]().load()
    assert data.train_size == 1440
    parts = [np.arange(0, 700), np.arange(700, 1440)]
    images, labels = WorkerBatches(data, parts, batch_size=8, seed=1).round(0)
    assert images.shape == (2, 8, 1, 8, 8)
    assert {*labels.unique().tolist()} <= {0, 1}
    assert abs(float(images.mean())) < 0.3


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_notebook(tmp_path: Path) -> None:
    """Executed anew: the same words, a figure, and ARC ahead; what is committed has its outputs."""
    import nbformat
    from nbclient import NotebookClient

    committed = nbformat.read(EXAMPLES / "two_runs.ipynb", as_version=4)
    assert (EXAMPLES / "two_runs.ipynb").stat().st_size < 100_000
    notebook = nbformat.from_dict({**committed, "cells": [dict(c) for c in committed.cells]})
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    for cells in (committed.cells, notebook.cells):
        first, second = (cell for cell in cells if cell.cell_type == "code")
        arc, static = map(float, re.findall(r"([\d.]+)%", first.outputs[0].text))
        assert arc > static + 20
        assert any("image/svg+xml" in output.get("data", {}) for output in second.outputs)
