"""Claims: what is measured, and when it decides."""

import json
from pathlib import Path

import pytest

from lit_byz.errors import BadRequest
from lit_byz.report.paper.claims import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    Claim,
    claims_of,
    load_claims,
    unmatched,
)
from lit_byz.report.paper.experiment import find
from lit_byz.report.paper.measures import Measured, follows, trend
from lit_byz.report.paper.survey import survey
from pipelines.report import main as report
from tests.tracking._stores import new_store


def make(relation: str, value: float, tolerance: float = 0.02) -> Claim:
    return Claim("c", "Figure 1", "says", "paper", "paper/fig1a", relation, value, tolerance)


@pytest.mark.parametrize(
    ("relation", "interval", "verdict"),
    [
        ("above", (0.84, 0.84), REPRODUCED),
        ("above", (0.82, 0.82), NOT_REPRODUCED),
        ("above", (0.0, 0.9), UNDECIDED),
        ("above", (0.0, 0.5), NOT_REPRODUCED),  # whatever the missing attacks do
        ("below", (0.0, 0.86), REPRODUCED),
        ("below", (0.0, 0.9), UNDECIDED),
        ("below", (0.9, 0.9), NOT_REPRODUCED),
        ("about", (0.86, 0.86), REPRODUCED),
        ("about", (0.5, 0.5), NOT_REPRODUCED),
        ("about", (0.0, 0.99), UNDECIDED),
        ("about", (0.0, 0.85), UNDECIDED),
        ("about", (0.0, 0.5), NOT_REPRODUCED),
    ],
)
def test_a_claim_is_decided_by_all_that_is_possible(
    relation: str, interval: tuple[float, float], verdict: str
) -> None:
    assert make(relation, 0.85).verdict(Measured({1: interval})) == verdict


def test_without_runs_nothing_is_decided() -> None:
    assert make("above", 0.0).verdict(None) == UNDECIDED
    assert make("above", 0.0).verdict(Measured({})) == UNDECIDED


def test_differences_are_of_the_seeds_that_both_have() -> None:
    one = Measured({1: (0.5, 0.6), 2: (0.9, 0.9)})
    other = Measured({1: (0.1, 0.2), 3: (0.0, 0.0)})
    assert one.minus(other).by_seed == {1: (pytest.approx(0.3), pytest.approx(0.5))}


def test_every_claim_speaks_of_cells_that_its_experiment_has() -> None:
    claims = load_claims()
    assert len(claims) >= 40
    assert len({claim.id for claim in claims}) == len(claims)
    surveys = {
        name: survey(find(name, ["seed=[1]"]), {}, {}, lambda run_id, key: [])
        for name in {claim.experiment for claim in claims}
    }
    for claim in claims:
        found = surveys[claim.experiment]
        assert not unmatched(claim, found), claim
        if claim.attack is not None:
            names = {a.partition("@")[0] for cell in found.methods for a in cell.result.attacks}
            assert claim.attack in names, claim


def test_every_row_of_the_papers_numbers_is_claimed() -> None:
    """The settings in the table of what the paper reports, and all printed numbers."""
    claims = load_claims()
    by_place: dict[str, int] = {}
    for claim in claims:
        by_place[claim.place] = by_place.get(claim.place, 0) + 1
    for place in ("Figure 1a", "Figure 1b", "Figure 2a", "Figure 3c", "Figure 4a", "Figure 4b"):
        assert by_place[place] >= 1
    assert by_place["Table 1"] == 8 + 2
    assert (by_place["Table 5"], by_place["Table 6"], by_place["Table 7"]) == (8, 16, 16)
    assert (by_place["Table 3"], by_place["Table 4"]) == (30, 30)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"below": 0.1}, "needs one of"),
        ({"colour": "red"}, "unknown key 'colour'"),
        ({"quantity": "beauty"}, "unknown quantity 'beauty'"),
    ],
)
def test_bad_claims(change: dict[str, object], message: str) -> None:
    good = {"id": "x", "place": "p", "says": "s", "paper": "v", "experiment": "e", "above": 0.5}
    with pytest.raises(BadRequest, match=message):
        list(claims_of({**good, "tolerance": 0.0, **change}))


@pytest.mark.slow
def test_claims_are_not_held_against_other_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs of a hundred steps say nothing of what the paper found after a thousand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path / "mlruns"))
    for changes, judged in ((["seed=[1]"], True), (["train.steps=100"], False)):
        assert report(["paper/fig7", *changes, "--formats", "png", "--json"]) == 0
        assert bool(json.loads(capsys.readouterr().out)["claims"]) == judged


def test_thresholds_over_a_run() -> None:
    falling = {step: [100.0 / step] for step in range(1, 101)}
    norm = {step: [3.0 * 100.0 / step] for step in range(1, 101)}
    assert trend(falling) == pytest.approx((100 / 95.5) / (100 / 5.5), rel=0.05)
    assert follows(falling, norm) == pytest.approx(1.0)
    assert trend({1: [1.0]}) is None
    assert follows(falling, {step: [1.0] for step in falling}) is None
