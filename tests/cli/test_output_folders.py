"""Every study has a folder of its own, and keeps it."""

from pathlib import Path

import pytest

from lit_byz.cli import door
from lit_byz.cli.output_folders import folder_name, folder_of
from lit_byz.config.grid import points
from lit_byz.config.grid_source import read_grid
from lit_byz.tracking.records import StudyRecord


def record(key: str, **facts: str) -> StudyRecord:
    return StudyRecord("sweep", key * 64, "a sweep", facts)


def test_nothing_of_another_study_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = folder_of(record("a", folder="quickstart"))
    assert first == Path("outputs/quickstart")
    (first / "worst_case.png").write_text("a picture")
    assert folder_of(record("a", folder="quickstart")) == first
    other = folder_of(record("b", folder="quickstart"))
    assert other == Path("outputs/quickstart-bbbbbb")
    assert folder_of(record("b", folder="quickstart")) == other
    assert (first / "worst_case.png").read_text() == "a picture"
    Path("outputs/sweep").mkdir()
    Path("outputs/sweep/notes.txt").write_text("a person's own")
    assert folder_of(record("c")) == Path("outputs/sweep-cccccc")
    assert folder_of(record("a"), "chosen") == Path("chosen")
    assert not Path("chosen").exists()


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ([], "quickstart"),
        (["experiment=paper/fig1a", "seed=1"], "paper-fig1a"),
        (["config=some/where/my grid.yaml"], "my-grid"),
        (["clip=[none,arc]", "attack=[sf,foe]", "seed=[1,2]"], "sweep-clip-attack"),
        (["clip=static", "clip.C=[1,2]"], "sweep-clip.C"),
        (["dataset=digits"], "sweep-one-cell"),
    ],
)
def test_names(settings: list[str], name: str) -> None:
    files = ("experiment", "config")
    own = [word for word in settings if word.partition("=")[0] not in files]
    found = points(read_grid([*own, "dataset=digits", "model=logreg"], "quickstart"))
    assert folder_name("sweep", settings, found, bare="quickstart") == name


def test_tuned_keys_name_a_study() -> None:
    assert folder_name("tune", ["x=1"], [], ["clip.C"], bare="tune_digits") == "tune-clip.C"


@pytest.mark.parametrize("place", ["a_file", "a_file/below"])
@pytest.mark.parametrize("name", ["sweep", "tune", "report", "evaluate"])
def test_a_file_is_no_folder(
    name: str,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Which is said before anything is computed."""
    monkeypatch.chdir(tmp_path)
    Path("a_file").write_text("mine")
    assert door.main([name, "--out", place]) == 2
    assert capsys.readouterr().err.endswith("a_file is a file, not a folder\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a_file"]
