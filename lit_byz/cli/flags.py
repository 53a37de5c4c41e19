"""The options of commands, read from their source: a shell that completes a word cannot wait.

To ask a command's parser would mean to import the command, and with some of them torch.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
# Packages whose functions add options.
LOOKED_AT = ("lit_byz.cli", "lit_byz.benchmark")


@dataclass(frozen=True)
class Flag:
    """An option: ``--name``, a line about it, and its values where they are few."""

    name: str
    text: str
    choices: tuple[str, ...] = ()


def flags(module: str) -> list[Flag]:
    """The options of the command, or of the benchmark, in a module; none if there is no module.

    >>> [flag.name for flag in flags("lit_byz.cli.train")]
    ['--debug', '--help', '--print-config', '--quiet']
    """
    path = _path(module)
    if not path.is_file():
        return []
    found = {"--help": Flag("--help", "show what there is to say about the command")}
    found |= {flag.name: flag for flag in _added(_tree(path), _imports(_tree(path), module))}
    if module.startswith("lit_byz.benchmark"):
        found |= {flag.name: flag for flag in _added_by("lit_byz.cli.command", "Parser", [])}
    return [found[name] for name in sorted(found)]


def _path(module: str) -> Path:
    return PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(tree: ast.AST, module: str) -> dict[str, tuple[str, str]]:
    """Where names come from that were imported: the module, and the name there."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(LOOKED_AT):
            for name in node.names:
                found[name.asname or name.name] = (str(node.module), name.name)
    return found


def _added(tree: ast.AST, imported: dict[str, tuple[str, str]]) -> Iterator[Flag]:
    """The options that a piece of source adds to a parser, also by functions that it calls."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        first, _, rest = called.partition(".")
        if called.endswith(".add_argument"):
            yield from _flag(node)
        elif first in imported:
            module, name = imported[first]
            if rest:
                module, name = f"{module}.{name}", rest
            yield from _added_by(module, name, node.keywords)


def _added_by(module: str, name: str, keywords: Sequence[ast.keyword]) -> Iterator[Flag]:
    """The options that a function of ours adds; those below an ``if`` where it holds."""
    found = _definition(module, name)
    if found is None:
        return
    given = {keyword.arg: _holds(keyword.value) for keyword in keywords}
    usual = _defaults(found) if isinstance(found, ast.FunctionDef) else {}
    skipped = {
        inner
        for node in ast.walk(found)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
        if not given.get(node.test.id, usual.get(node.test.id, True))
        for part in node.body
        for inner in ast.walk(part)
    }
    for node in ast.walk(found):
        if isinstance(node, ast.Call) and node not in skipped:
            called = ast.unparse(node.func)
            if called.endswith(".add_argument"):
                yield from _flag(node)
            elif called == "Parser" and name != "Parser":
                yield from _added_by("lit_byz.cli.command", "Parser", [])


def _definition(module: str, name: str) -> ast.AST | None:
    path = _path(module)
    body = _tree(path).body if path.is_file() else []
    kinds = (ast.FunctionDef, ast.ClassDef)
    return next((node for node in body if isinstance(node, kinds) and node.name == name), None)


def _defaults(function: ast.FunctionDef) -> dict[str, bool]:
    """Which arguments that may be left out are true then."""
    pairs = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return {argument.arg: _holds(default) for argument, default in pairs}


def _holds(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and bool(value.value)


def _flag(call: ast.Call) -> Iterator[Flag]:
    names = [a.value for a in call.args if isinstance(a, ast.Constant)]
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    text, choices = given.get("help"), given.get("choices")
    line = str(text.value) if isinstance(text, ast.Constant) else ""
    few = ast.literal_eval(choices) if isinstance(choices, ast.Tuple | ast.List) else ()
    for name in names:
        if isinstance(name, str) and name.startswith("--"):
            yield Flag(name, line, tuple(few))
