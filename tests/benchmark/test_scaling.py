"""The scaling figures on sizes that take no time; their numbers mean nothing."""

import json
from pathlib import Path

import pytest

from lit_byz.benchmark import scaling
from lit_byz.benchmark._memory import MemoryPoint, measure_memory
from pipelines import benchmark

SMALL = scaling.Sizes(
    n=(4, 6, 8), d=(100, 200, 400), factors=(1, 2, 4), fixed_n=5, fixed_d=200, memory=()
)


@pytest.mark.slow
def test_quick_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scaling, "QUICK", SMALL)
    asked = ["scaling", "--quick", "--out", str(tmp_path)]
    assert benchmark.main([*asked, "--only", "n", "d"]) == 0
    assert benchmark.main([*asked, "--only", "factors", "--add"]) == 0
    content = json.loads((tmp_path / "scaling.json").read_text())
    panels = [row["panel"] for row in content["rows"]]
    assert {panel: panels.count(panel) for panel in panels} == {"n": 12, "d": 12, "factors": 6}
    assert {(s["panel"], s["what"]): s["theory"] for s in content["slopes"]} == scaling.THEORY
    for ending in ("png", "pdf", "svg"):
        assert (tmp_path / f"scaling.{ending}").stat().st_size > 1000
    said = capsys.readouterr()
    assert "exponents, measured and in theory" in said.out
    assert "1/6  n = 4 …" in said.err


def test_slopes_are_those_of_the_larger_sizes() -> None:
    sizes = [10, 20, 40, 80, 160, 320]
    rows = [scaling.Row("n", "nnm", n, 1, 5, 1, 1e-3 if n < 80 else 1e-6 * n**2) for n in sizes]
    (slope,) = scaling.slopes(rows)
    assert slope.measured == pytest.approx(2.0)
    assert slope.theory == 2


def test_goals() -> None:
    points = [MemoryPoint("foe", *scaling.GOAL_SIZE, 10**8, 10**8, over) for over in (3.9, 4.1)]
    assert scaling.goals(points[:1]) == {
        "foe at n=39, d=431,080: at most 4× the n × d matrix": True
    }
    assert list(scaling.goals(points[1:]).values()) == [False]
    assert scaling.goals([MemoryPoint("foe", 10, 1, 100, 1, 1, 9.0)]) == {}


@pytest.mark.parametrize(
    "kind", ["server", *(pytest.param(k, marks=pytest.mark.slow) for k in ("foe", "training"))]
)
def test_memory_is_that_of_the_vectors(kind: str) -> None:
    n, f, d = (20, 2, 431_080) if kind == "training" else (20, 2, 200_000)
    point = measure_memory(kind, n, f, d)
    assert point.base > 50e6
    assert 0.9 < point.over_matrix < 12
    assert point.beyond == pytest.approx(point.over_matrix * 4 * n * d)
