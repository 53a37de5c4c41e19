"""The house rules that a machine can check."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "lit_byz"
LONGEST = 300


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_no_file_is_too_long() -> None:
    every = [*modules(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.py")]
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in every}
    assert {path: n for path, n in lengths.items() if n > LONGEST} == {}


def test_no_package_reaches_into_the_private_modules_of_another() -> None:
    found = []
    for path in modules():
        own = ".".join(path.relative_to(ROOT).with_suffix("").parts[:2])
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                parts = name.split(".")
                # lit_byz._checks and its like belong to the whole package.
                private = parts[0] == "lit_byz" and len(parts) > 2 and parts[2].startswith("_")
                if private and ".".join(parts[:2]) != own:
                    found.append(f"{path.relative_to(ROOT)}: {name}")
    assert found == []


def test_every_public_name_has_a_docstring() -> None:
    bare = []
    for path in modules():
        tree = ast.parse(path.read_text())
        if not ast.get_docstring(tree):
            bare.append(str(path.relative_to(ROOT)))
        for node in tree.body:
            named = isinstance(node, ast.ClassDef | ast.FunctionDef)
            if named and not node.name.startswith("_") and not ast.get_docstring(node):
                bare.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert bare == []


def test_the_package_says_that_it_has_types() -> None:
    assert (PACKAGE / "py.typed").exists()
