"""Classes by dotted path: what they derive from, and which modules may be imported for them."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lit_byz._imports import allow, is_allowed
from lit_byz.config.components import CALLBACKS, GROUPS, component, registry
from lit_byz.config.compose import compose
from lit_byz.errors import BadRequest
from lit_byz.execution.ray_worker import Place
from tests.config._own import refused, written

Write = Callable[[str, str], Path]
BASES = {
    "dataset": "lit_byz.data.Dataset",
    "partition": "lit_byz.data.Partition",
    "model": "torch.nn.Module",
    "clip": "lit_byz.robust.Clip",
    "mix": "lit_byz.robust.Mix",
    "rule": "lit_byz.robust.Rule",
    "attack": "lit_byz.attacks.Attack",
}
# Says that it was imported, called or made; what derives from nothing must never be.
MINE = """
    import pathlib

    pathlib.Path("imported").touch()
    from lit_byz.robust import Rule

    class Mine(Rule):
        def aggregate(self, x):
            return x.mean(0)

    class Meta(type):
        def __call__(cls, *args, **kwargs):
            pathlib.Path("called").touch()

        def __subclasscheck__(cls, other):
            return True

    class Stranger(metaclass=Meta):
        def __init__(self, **settings):
            pathlib.Path("called").touch()

    def function(**settings):
        pathlib.Path("called").touch()
"""


@pytest.fixture
def mine(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module in the working directory."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    with written(tmp_path, "lies_here", MINE) as name:
        yield name


@pytest.mark.parametrize("group", GROUPS)
def test_what_every_class_derives_from(group: str) -> None:
    known = registry(group)
    assert known.base == BASES[group]
    for name in known:
        assert issubclass(known[name], known._base_class)
    for stranger in ("collections.OrderedDict", "lit_byz.registry.Registry", BASES[group]):
        with pytest.raises(BadRequest, match=f"'{stranger}': must derive from {known.base}"):
            component(group, stranger)


def test_what_callbacks_derive_from() -> None:
    from lightning.pytorch.callbacks import Callback

    assert issubclass(CALLBACKS["lit_byz.training.DissimilarityLogger"], Callback)
    with pytest.raises(BadRequest, match=r"must derive from lightning.pytorch.callbacks.Callback"):
        CALLBACKS["lit_byz.robust.CWTM"]


@pytest.mark.parametrize("group", ["rule", "attack", "dataset"])
def test_the_example_of_the_message_works(group: str) -> None:
    known = registry(group)
    assert len(known.example.splitlines()) == 3
    made: dict[str, type] = {}
    exec(known.example, made)
    (own,) = [kind for name, kind in made.items() if name.startswith("My")]
    assert issubclass(own, known._base_class)
    own()


def test_nothing_is_called_before_its_class_is_checked(mine: str, tmp_path: Path) -> None:
    assert "must derive from" in refused(f"rule={mine}.Stranger", "rule.x=1")
    assert "is a function, not a class" in refused(f"rule={mine}.function")
    assert "must derive from" in refused(f"trainer.callbacks=[{{name: {mine}.Stranger, x: 1}}]")
    assert (tmp_path / "imported").exists()
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize(
    ("file", "argument"),
    [
        ("mine.yaml", "config=configs/mine.yaml"),
        ("experiment/mine.yaml", "experiment=mine"),
    ],
)
@pytest.mark.parametrize(
    "content",
    [
        "rule: {name: subprocess.Popen, args: [touch, called]}",
        "trainer: {callbacks: [{name: subprocess.Popen, args: [touch, called]}]}",
        "dataset: {name: os.system, command: touch called}",
        "rule: lies_here.Mine",
        "attack: {assumed_rule: lies_here.Mine}",
        "trainer: {callbacks: [lies_here.Mine]}",
        "attack: lies_here.Mine@coarse",
    ],
)
def test_a_file_alone_has_nothing_executed(
    mine: str, write: Write, tmp_path: Path, file: str, argument: str, content: str
) -> None:
    write(file, content)
    said = refused(argument)
    assert ("must derive from" in said) != ("a config file alone cannot have it imported" in said)
    assert not (tmp_path / "called").exists()
    assert not (tmp_path / "imported").exists()
    assert mine not in sys.modules


def test_a_file_in_place_of_one_of_the_package(mine: str, write: Write, tmp_path: Path) -> None:
    write("rule/cwtm.yaml", "name: subprocess.Popen\nargs: [touch, called]")
    assert "must derive from lit_byz.robust.Rule" in refused()
    write("rule/cwtm.yaml", "name: lies_here.Mine")
    assert refused() == (
        "rule 'lies_here.Mine': lies_here is not installed, and a config file alone cannot have it "
        "imported; if you trust it, write lies_here.Mine on the command line, import "
        "lies_here in Python, or set LIT_BYZ_IMPORT=lies_here"
    )
    assert not (tmp_path / "called").exists()
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    "typed",
    [
        "rule=lies_here.Mine",
        "rule.name=lies_here.Mine",
        "rule={name: lies_here.Mine}",
        "attack.assumed_rule=lies_here.Mine",
        "tune.space.rule.choices=[cwtm,lies_here.Mine]",
    ],
)
def test_the_command_line_allows_what_it_names(mine: str, write: Write, typed: str) -> None:
    from lit_byz.config import sources

    write("mine.yaml", "rule: lies_here.Mine")
    sources.parse([typed], GROUPS)
    assert os.environ["LIT_BYZ_IMPORT"] == "lies_here"
    assert compose(["config=configs/mine.yaml"]).rule.name == "lies_here.Mine"
    assert Place.here().environment["LIT_BYZ_IMPORT"] == "lies_here"


@pytest.mark.parametrize(
    "typed", ["config=lies_here.yaml", "data.root=lies_here.Mine", "resume=lies_here.ckpt"]
)
def test_names_of_files_are_no_names_of_modules(mine: str, typed: str) -> None:
    from lit_byz.config import sources

    sources.parse([typed], GROUPS)
    assert not is_allowed(mine)


def test_the_variable_allows_what_it_names(
    mine: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("mine.yaml", "rule: lies_here.Mine")
    for other in ("lies", "lies_here.inner", "lies_herex", ",,", "lies_here.Mine"):
        monkeypatch.setenv("LIT_BYZ_IMPORT", other)
        assert "a config file alone" in refused("config=configs/mine.yaml")
    monkeypatch.setenv("LIT_BYZ_IMPORT", "other, lies_here")
    assert compose(["config=configs/mine.yaml"]).rule.name == "lies_here.Mine"


def test_a_package_stands_for_what_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    allow("a.b.C")
    assert os.environ["LIT_BYZ_IMPORT"] == "a.b"
    assert is_allowed("a.b")
    assert is_allowed("a.b.c")
    assert not is_allowed("a")
    assert not is_allowed("a.bc")


def test_what_is_in_memory_needs_no_import(mine: str, write: Write) -> None:
    __import__(mine)
    write("mine.yaml", "rule: lies_here.Mine")
    assert compose(["config=configs/mine.yaml"]).rule.name == "lies_here.Mine"


def test_a_namespace_with_a_part_that_lies_here(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder without ``__init__`` joins an installed package of the same name."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (tmp_path / "scattered").mkdir()
    (tmp_path / "scattered" / "part.py").write_text("raise AssertionError('imported')")
    write("mine.yaml", "rule: scattered.part.Rule")
    assert "a config file alone" in refused("config=configs/mine.yaml")


def test_installed_modules_may_be_named_by_a_file(write: Write) -> None:
    write("mine.yaml", "model: torch.nn.Flatten")
    assert "model=torch.nn.Flatten: returns" in refused("config=configs/mine.yaml")
    write("mine.yaml", "rule: lit_byz.robust.CWTM")
    assert compose(["config=configs/mine.yaml"]).rule.name == "lit_byz.robust.CWTM"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("import nowhere_to_be_found", "No module named 'nowhere_to_be_found'"),
        ("def f(:", "SyntaxError: "),
        ("raise BaseExceptionGroup('g', [KeyError(1)])", "ExceptionGroup: g"),
    ],
)
def test_a_module_that_cannot_be_imported(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    (tmp_path / "gives_up.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    said = refused("rule=gives_up.Mine")
    assert said.startswith(f"rule 'gives_up.Mine': cannot import gives_up: {reason}")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise KeyError('x')", "KeyError: 'x'"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("import torch; torch.zeros(2) @ torch.zeros(3)", "RuntimeError: "),
    ],
)
def test_a_class_that_cannot_be_made(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, reason: str
) -> None:
    (tmp_path / "no_instance.py").write_text(
        "from lit_byz.robust import Rule\n"
        f"class Mine(Rule):\n    def __init__(self):\n        {body}\n"
        "    def aggregate(self, x): return x.mean(0)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert refused("rule=no_instance.Mine").startswith(f"rule=no_instance.Mine: {reason}")
    del sys.modules["no_instance"]


def test_a_data_set_that_says_nothing_of_its_images(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare_data.py").write_text(
        "from lit_byz.data import Dataset\nclass Bare(Dataset):\n    def read(self, root): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    said = refused("dataset=bare_data.Bare")
    assert said.startswith("dataset=bare_data.Bare: its class must say shape and classes")


@pytest.mark.slow
def test_processes_know_what_the_command_line_named(mine: str) -> None:
    compose(["rule=lies_here.Mine"])
    program = (
        "import sys; sys.path.append('.')\n"
        "from lit_byz.config.components import build\n"
        "print(type(build('rule', {'name': 'lies_here.Mine'})).__name__)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "Mine\n"
