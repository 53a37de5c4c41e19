"""The benchmark of searches on vectors so short that it takes no time; its numbers mean nothing."""

import csv
import json
from pathlib import Path

import pytest

from pipelines import benchmark


def test_weaker_searches_are_timed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["attacks", "--quick", "--parameters", "50", "--only", "gm", "--repeats", "2"]
    assert benchmark.main([*arguments, "--out", str(tmp_path)]) == 0
    rows = list(csv.DictReader((tmp_path / "attacks.csv").open()))
    assert [row["attack"] for row in rows] == ["foe", "alie"]
    for row in rows:
        assert float(row["ratio"]) == pytest.approx(float(row["byzfl"]) / float(row["ours"]))
        assert all(float(row[name]) > 0 for name in ("ours", "published", "coarse"))
    assert json.loads((tmp_path / "attacks.json").read_text())["search"] == "grid"
    assert "weaker searches, ms" in capsys.readouterr().out


def test_an_unknown_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["attacks", "--search", "publised"]) == 2
    assert "did you mean 'published'?" in capsys.readouterr().err


@pytest.mark.slow
def test_stronger_attackers_ask_more_and_do_more(tmp_path: Path) -> None:
    arguments = ["strength", "--quick", "--only", "gm", "--threads", "1"]
    assert benchmark.main([*arguments, "--out", str(tmp_path)]) == 0
    rows = {
        row["attack"]: row for row in json.loads((tmp_path / "strength.json").read_text())["rows"]
    }
    assert [rows[f"foe@{search}"]["evaluations"] for search in ("published", "coarse")] == [20, 20]
    assert 20 < rows["foe"]["evaluations"] < rows["span"]["evaluations"] < 10_000
    assert rows["foe"]["damage"] >= 0.999 * rows["foe@published"]["damage"]
    assert rows["span"]["damage"] >= max(rows[a]["damage"] for a in ("foe", "alie"))
    assert all(row["over_floor"] > 0.2 for row in rows.values())  # compiled gradients beat it
