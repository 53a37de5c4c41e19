"""Tables, files and figures of the study of initialisation."""

import csv
import io
from pathlib import Path

import pytest
from rich.console import Console

from lit_byz.report.init_scaling import InitialGradients, as_csv, figure, growth, table
from lit_byz.report.worst_case_table import Accuracy
from tests.report.test_figures import ink

CURVES = {
    method: {
        mu: {
            attack: {
                seed: Accuracy(max(0.1, top - 0.05 * mu * mu - 0.02 * seed)) for seed in (1, 2)
            }
            for attack in ("sf", "foe")
        }
        for mu in (1.0, 2.0, 4.0)
    }
    for method, top in (("no clipping", 0.5), ("ARC", 0.9))
}
NORMS = {"": {mu: {1: InitialGradients(3 * mu**2.5, mu**2.5)} for mu in (1.0, 2.0, 4.0)}}


def shown(curves: object = CURVES) -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(table(curves, NORMS, "digits"))  # type: ignore[arg-type]
    return console.export_text()


def test_table() -> None:
    text = shown()
    assert "ARC" in text
    assert "82.0 ± 1.4" in text  # 0.9 − 0.05 − 0.02 · (1, 2)
    assert "ζ" in text
    del_one = {"ARC": {1.0: {"sf": {1: Accuracy(0.5)}, "foe": {}}}}
    assert "incomplete" in shown(del_one)
    assert "≥ 50.0" in shown({"ARC": {1.0: {"sf": {1: Accuracy(0.5, lower_bound=True)}}}})


def test_growth_is_the_power() -> None:
    assert growth(NORMS[""]) == pytest.approx(2.5)
    assert growth({1.0: NORMS[""][1.0]}) is None
    assert growth({1.0: {1: InitialGradients(0, 0)}, 2.0: {1: InitialGradients(1, 1)}}) is None


def test_csv_has_every_number() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(CURVES, NORMS))))
    kinds = [row["what"] for row in rows]
    assert kinds.count("max_accuracy") == 2 * 3 * 2 * 2
    assert kinds.count("worst_case") == 2 * 3 * 2
    assert kinds.count("initial_gradient_largest") == kinds.count("initial_gradient_mean") == 3


def test_figure(tmp_path: Path) -> None:
    figure(CURVES, NORMS, "digits", tmp_path / "both.png")
    figure(CURVES, {}, "digits", tmp_path / "one.png")
    figure({}, {}, "nothing yet", tmp_path / "none.png")
    inks = [ink(tmp_path / f"{name}.png") for name in ("none", "one", "both")]
    assert inks == sorted(inks)
    assert inks[2] > inks[0]
