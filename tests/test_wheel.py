"""A wheel has all that the commands need away from a checkout."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GRID = ["dataset=digits", "model=logreg", "clip=[none,arc]", "attack=[sf,lf]", "train.steps=4"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    (found,) = folder.glob("*.whl")
    return found


def tracked(folder: str) -> set[str]:
    """The files of a folder, but for what Python leaves there."""
    paths = [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    paths = [path for path in paths if "__pycache__" not in path.parts]
    return {path.relative_to(ROOT / folder).as_posix() for path in paths}


def test_it_has_the_package_the_configs_and_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (entry,) = (name for name in names if name.endswith("entry_points.txt"))
        assert "lit-byz = lit_byz.cli.door:main" in archive.read(entry).decode()
    assert {f"lit_byz/{name}" for name in tracked("lit_byz")} <= names
    assert {f"lit_byz/_configs/{name}" for name in tracked("configs")} <= names
    for name in ("_native/columns.cpp", "_native/parallel.h", "training/gradient_methods.yaml"):
        assert f"lit_byz/{name}" in names
    others = {name.partition("/")[0] for name in names} - {"lit_byz"}
    assert all(name.endswith(".dist-info") for name in others), others


@pytest.mark.slow
def test_it_works_in_an_empty_folder_of_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    """The environment's own packages are this one's, which takes seconds instead of minutes."""
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    install = ["--python", str(python), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    # A path in such a file is looked in, while the files of this kind that lie there are not: the
    # checkout that this environment may have installed stays out.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    here = tmp_path / "empty"
    here.mkdir()
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}

    def call(*words: str) -> str:
        done = subprocess.run(
            [str(environment / "bin" / words[0]), *words[1:]],
            cwd=here,
            env=variables,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert str(site) in call("python", "-c", "import lit_byz; print(lit_byz.__file__)")
    assert call("lit-byz", "--version").startswith("lit-byz ")
    assert "paper/fig1a" in call("lit-byz", "list", "experiments")
    found = json.loads(call("lit-byz", "sweep", *GRID, "--json"))
    assert [cell["cell"] for cell in found["cells"]] == ["clip=none", "clip=arc"]
    shown = call("lit-byz", "report")
    assert "draw it again:  lit-byz report " in shown
    assert "pipelines" not in shown
    assert "sweep of 4 runs" in call("lit-byz", "list")
    assert sorted(path.name for path in here.iterdir()) == ["mlruns", "outputs"]
