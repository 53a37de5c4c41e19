"""What somebody else may have written: into the store, or as the name of a file."""

import subprocess
from pathlib import Path

import pytest

from lit_byz.cli.completion import BASH
from lit_byz.cli.output_folders import OUTPUTS, folder_of
from lit_byz.tracking.records import StudyRecord


@pytest.mark.parametrize("folder", ["/elsewhere", "../../elsewhere", "..", ".", "a/../../b", "~/x"])
def test_a_record_cannot_lead_out_of_the_outputs(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "one" / "two"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    named = str(tmp_path / "elsewhere") if folder == "/elsewhere" else folder
    # Its key, too, where a study of the same name has the folder.
    for key in ("a" * 64, f"{'../' * 5}b", f"/{tmp_path}/c"):
        found = folder_of(StudyRecord(named, key, "a sweep", {"folder": named}))
        assert found.resolve().parent == here / OUTPUTS
        assert found.resolve() != here / OUTPUTS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one"]
    assert sorted(path.name for path in here.iterdir()) == [OUTPUTS]


def test_a_name_that_was_cut_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"{'a' * 59}-"
    assert folder_of(StudyRecord("sweep", "k" * 64, "a sweep", {"folder": name})).name == name


ASK = """
lit-byz() { printf '%s\\n' "$ANSWER"; }
compopt() { :; }
COMP_LINE="$TYPED" COMP_POINT=${#TYPED}
_lit_byz
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("typed", "answer", "completed"),
    [
        ("config=", "config=$(touch x).yaml", "\\$\\(touch\\ x\\).yaml"),
        ("resume=", "resume=a b;c.ckpt", "a\\ b\\;c.ckpt"),
        ("config=pl", "config=plain.yaml", "plain.yaml"),
        ("clip=[none,a", "clip=[none,arc", "[none,arc"),
    ],
)
def test_names_of_files_reach_bash_as_names(
    typed: str, answer: str, completed: str, tmp_path: Path
) -> None:
    said = subprocess.run(
        ["bash", "--norc", "-c", BASH + ASK],
        cwd=tmp_path,
        env={"TYPED": f"lit-byz train {typed}", "ANSWER": answer, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"{completed}\n"
