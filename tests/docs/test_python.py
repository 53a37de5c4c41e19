"""Blocks of Python in pages run as they stand, and give what their comments say."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli._documented import ROOT, SOURCES
from tests.tracking._stores import new_store


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


PAGES = [path for path in SOURCES if path.suffix == ".md" and blocks(path)]


def told(block: str, statement: ast.stmt) -> str | None:
    """The value that a comment behind an expression has, as in ``2 * 3  # 6``; words are none."""
    line = block.splitlines()[(statement.end_lineno or 0) - 1].encode()
    behind = line[statement.end_col_offset or 0 :].decode().strip()
    if not isinstance(statement, ast.Expr) or not behind.startswith("#"):
        return None
    text = behind.removeprefix("#").strip()
    try:
        ast.literal_eval(text.rstrip("…"))
    except (SyntaxError, ValueError):
        return None
    return text


def agrees(value: Any, text: str) -> bool:
    """Whether a value is the one that is told: to its last digit, or the shape of a tensor."""
    if text.endswith("…"):
        return str(value).startswith(text[:-1])
    expected = ast.literal_eval(text)
    if isinstance(expected, float):
        return f"{value:.{len(text.partition('.')[2])}f}" == text
    if isinstance(expected, tuple) and hasattr(value, "shape"):
        return tuple(value.shape) == expected
    return bool(value == expected)


def test_values_are_told_and_compared() -> None:
    every = [block for page in PAGES for block in blocks(page)]
    found = [text for block in every for s in ast.parse(block).body if (text := told(block, s))]
    assert len(found) >= 5
    (statement,) = ast.parse("'κ' * 2  # (n, d) in, (n, d) out").body
    assert told("'κ' * 2  # (n, d) in, (n, d) out", statement) is None
    assert agrees(1 / 6, "0.1666…")
    assert agrees(2.0099, "2.01")
    assert not agrees(2.0199, "2.01")
    assert not agrees(1 / 7, "0.1666…")
    assert not agrees(88, "89")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_in_pages(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path))
    for block in blocks(page):
        names: dict[str, Any] = {}
        for statement in ast.parse(block).body:
            if not isinstance(statement, ast.Expr):
                exec(compile(ast.Module([statement], []), str(page), "exec"), names)
                continue
            value = eval(compile(ast.Expression(statement.value), str(page), "eval"), names)
            text = told(block, statement)
            assert text is None or agrees(value, text), f"{value!r} is not {text}"
