"""What can be chosen and set, read from source files: for whoever has no time to import torch.

The options of a group are classes, and to import them takes seconds, which neither a shell that
completes a word nor a list of names should cost. Their names, first lines and arguments stand in
the source. (``components`` says the same with the classes at hand; the tests compare them.)
"""

import ast
import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lit_byz.config import sources
from lit_byz.config.fields import Field, dataclass_fields
from lit_byz.config.schema import SECTIONS, Config

# The module of each group's classes and the name of its registry.
REGISTRIES = {
    "dataset": ("lit_byz.data", "DATASETS"),
    "partition": ("lit_byz.data", "PARTITIONS"),
    "model": ("lit_byz.models", "MODELS"),
    "clip": ("lit_byz.robust", "CLIPS"),
    "mix": ("lit_byz.robust", "MIXES"),
    "rule": ("lit_byz.robust", "RULES"),
    "attack": ("lit_byz.attacks", "ATTACKS"),
}
PACKAGE = Path(__file__).parents[1]
# Arguments of a model that its data set gives, and a key of its section that is no argument.
GIVEN = {"model": ("shape", "classes")}
OWN = {"model": ("init_scale",)}


@dataclass(frozen=True)
class Option:
    """Something to choose: its name, a line about it, and its arguments."""

    name: str
    text: str
    arguments: tuple[str, ...] = ()


def options(group: str) -> list[Option]:
    """What a group offers, by name: registered classes, and config files.

    >>> [option.name for option in options("clip")]
    ['arc', 'none', 'static']
    >>> options("clip")[0].arguments
    ('f', 'zeta')
    """
    known = {option.name: option for option in _registered(group)}
    for name, path in sources.files(group).items():
        if name not in known:
            made_of = known.get(str(sources.load(path).content.get("name")))
            known[name] = Option(name, first_comment(path), made_of.arguments if made_of else ())
    return [known[name] for name in sorted(known)]


def meant(group: str, word: str) -> list[str]:
    """The options that a word describes, as somebody calls them who does not know their names.

    >>> meant("rule", "trimmed_mean"), meant("attack", "sign_flip"), meant("rule", "cwtn")
    (['cwtm'], ['sf'], [])
    """
    parts = _parts(word)
    titles = {option.name: _parts(re.split(r"[:;.]", option.text)[0]) for option in options(group)}
    return [
        name
        for name, title in titles.items()
        if parts and all(any(other.startswith(part) for other in title) for part in parts)
    ]


def _parts(text: str) -> list[str]:
    """The words of a text, without those that say little."""
    return [part for part in re.findall(r"[^\W_]{3,}", text.lower()) if part not in ("the", "all")]


def experiments() -> list[Option]:
    """The files that ``experiment=`` names."""
    return [Option(name, first_comment(path)) for name, path in sources.files("experiment").items()]


def callbacks() -> list[Option]:
    """The package's own callbacks, by the dotted path that ``trainer.callbacks`` takes."""
    path = PACKAGE / "training" / "callbacks.py"
    return [
        Option(f"lit_byz.training.callbacks.{node.name}", _line(node))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and _line(node)
    ]


def keys() -> dict[str, Field]:
    """All keys beside the groups, by their dotted names."""
    found = {
        field.name: field
        for field in dataclass_fields(Config)
        if field.name not in SECTIONS and field.name not in REGISTRIES
    }
    for name, section in SECTIONS.items():
        found |= {f"{name}.{field.name}": field for field in dataclass_fields(section)}
    return found


def values(field: Field) -> list[str]:
    """The few values that a key can have, if they are few."""
    if field.hint is bool:
        return ["true", "false"]
    if typing.get_origin(field.hint) is typing.Literal:
        return [str(value) for value in typing.get_args(field.hint)]
    return []


def first_comment(path: Path) -> str:
    """The first line of a config file, where it is a comment."""
    with path.open(encoding="utf-8") as file:
        first = file.readline().rstrip("\n")
    return first.removeprefix("#").strip() if first.startswith("#") else ""


def _registered(group: str) -> Iterator[Option]:
    module, registry = REGISTRIES[group]
    folder = PACKAGE / module.rpartition(".")[2]
    classes = _classes(folder)
    for node in classes.values():
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(
                f"{registry}.register"
            ):
                taken = [a for a in _arguments(node, classes) if a not in GIVEN.get(group, ())]
                name = ast.literal_eval(decorator.args[0])
                yield Option(name, _line(node), (*taken, *OWN.get(group, ())))


@cache
def _classes(folder: Path) -> dict[str, ast.ClassDef]:
    """The classes of a package, by name."""
    found: dict[str, ast.ClassDef] = {}
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found |= {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return found


def _line(node: ast.ClassDef) -> str:
    return (ast.get_docstring(node) or "").split("\n")[0]


def _arguments(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[str]:
    """The arguments of a class's constructor: its own, a dataclass's fields, or a base class's."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return [argument.arg for argument in [*part.args.args[1:], *part.args.kwonlyargs]]
    bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
    inherited = [_arguments(classes[base], classes) for base in bases if base in classes]
    found = {name: None for names in reversed(inherited) for name in names}
    if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        found |= dict.fromkeys(_fields(node))
    return list(found)


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            made = "" if part.value is None else ast.unparse(part.value)
            if "ClassVar" not in ast.unparse(part.annotation) and "init=False" not in made:
                yield part.target.id


def strengths() -> dict[str, str]:
    """How hard attacks can search, with a line for each: the dict of that name in the source."""
    tree = ast.parse((PACKAGE / "attacks" / "_strength.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "STRENGTHS":
            found: dict[str, str] = ast.literal_eval(node.value)
            return found
    return {}
