"""What may be asked of a tuning study, and what is said where it may not."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lit_byz.config.ranges import Range
from lit_byz.config.search_space import read_problem
from lit_byz.errors import BadRequest
from pipelines import tune
from tests.cli.test_tune import CELL


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--trials", "0"], "--trials = 0"),
        (["--trials", "many"], "--trials"),
        (["--workers", "0"], "--workers 0"),
        (["--storage", "nonsense"], "--storage nonsense"),
        (["--storage", "nosuch://host/db"], "--storage nosuch://host/db"),
        (["tune.trials=1.5"], "tune.trials = 1.5"),
        (["tune.trails=5"], "did you mean 'trials'?"),
        (["tune.space.clip.C.low=100"], "must be less than high"),
        (["tune.space.clip.C.low=-1"], "must be greater than 0 on a log scale"),
        (["tune.space.clip.C.low=much"], "low = 'much': must be a number"),
        (["tune.space.clip.C.lo=1"], "did you mean 'low'?"),
        (["tune.space.clip.C.log=2"], "log = 2"),
        (["tune.space.clip.C=1"], "unknown key 'C'"),
        (["tune.space.seed=1"], "must be a range"),
        (["tune.space.rule.choices=[]"], "choices has no values"),
        (["tune.space.rule.choices=[cwtm,cwtn]"], "cwtn"),
        (["tune.space.train.lr.low=0.1"], "high is missing"),
        (["tune.space.train.stepz.choices=[1]"], "did you mean 'steps'?"),
        (["tune.space.workers.batch_size.low=1.5", "tune.space.workers.batch_size.high=3"], "1.5"),
        (["tune.space.seed.choices=[1,2]"], "cannot be tuned"),
        (["tune.space.rule.f.low=0", "tune.space.rule.f.high=3"], "2 f < n"),
        (["tune.compare=[ark]"], "did you mean 'arc'?"),
        (["tune.compare=arc"], "tune.compare = 'arc'"),
        (["attack=[sf,fou]"], "fou"),
        (["rule=[cwtm,gm]"], "a study tunes one cell"),
        (["clip=arc"], "'C'"),
        (["tracking.enabled=false"], "tracking.enabled"),
        (["experiment=nothing"], "nothing"),
    ],
)
def test_bad_requests_start_nothing(
    more: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "cell.yaml"
    path.write_text(yaml.safe_dump(CELL))
    monkeypatch.chdir(tmp_path)
    source = [] if any(word.startswith("experiment=") for word in more) else [f"config={path}"]
    assert tune.main([*source, *more]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert words in said.err
    assert said.out == ""
    assert [entry.name for entry in tmp_path.iterdir()] == ["cell.yaml"]


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"space": {"rule": {"choices": []}}}, "choices = []"),
        ({"space": {"rule": {"choices": ["gm", "gm"]}}}, "'gm' is there twice"),
        ({"space": {"clip.C": {"choices": [[1, 2]]}}}, "cannot be a choice"),
        ({"space": [1, 2]}, "tune.space = [1, 2]"),
        ({"compare": [{}]}, "an entry is empty"),
        ([1], "tune = [1]"),
    ],
)
def test_bad_sections(section: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "cell.yaml"
    path.write_text(yaml.safe_dump({**CELL, "tune": section}))
    with pytest.raises(BadRequest) as raised:
        read_problem([f"config={path}"], "tune_digits")
    assert words in str(raised.value)


def test_what_is_tuned_replaces_its_axis() -> None:
    """The quickstart is a grid over clips; tuned, it is one cell of static clipping."""
    problem = read_problem(["experiment=quickstart", "tune.space.clip.C.low=1"], "tune_digits", 3)
    assert problem.space == {"clip.C": Range(1.0, 100.0, log=True)}
    assert [point.attack for point in problem.reference()] == ["sf", "lf", "mimic", "foe", "alie"]
    assert {point.config.clip.name for point in problem.reference()} == {"static"}
    assert {point.config.clip.name for point in problem.comparisons()} == {"none", "arc"}
    same = read_problem(["experiment=quickstart", "tune.space.clip.C.low=1"], "tune_digits", 9)
    assert same.identity == problem.identity
    other = read_problem(["experiment=quickstart", "attack=sf"], "tune_digits", 3)
    assert other.identity != problem.identity


def test_values_are_rounded_within_their_range() -> None:
    assert Range(0.01, 100.0, log=True).rounded(1.234567) == 1.235
    assert Range(0.012344, 100.0, log=True).rounded(0.0123441) == 0.012344
    assert Range(1000.01, 1000.02).rounded(1000.0134) == 1000.0134
    assert Range(1, 5, integer=True).rounded(3) == 3
