"""What no command should be asked: odd command lines, files and variables.

Most of an input is as it should be, so that what is odd about it gets far.
"""

import json
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml
from hypothesis import strategies as st

from lit_byz.config.components import GROUPS, component_fields, options
from lit_byz.config.fields import dataclass_fields, is_sequence
from lit_byz.config.schema import SECTIONS

# A module and a program that leave a trace: no file and no variable of these tests may start them.
TRACE = "RAN"
MODULE = "canary"
SOURCE = f"import pathlib\npathlib.Path({TRACE!r}).touch()\nclass Any: pass\n"
PROGRAM = {"name": "subprocess.Popen", "args": ["touch", TRACE]}

# Every key and the type of its values; the groups' keys are their options' arguments.
KEYS: dict[str, Any] = {
    "seed": int,
    "resume": str,
    **{f"{name}.{f.name}": f.hint for name in SECTIONS for f in dataclass_fields(SECTIONS[name])},
    **{
        f"{group}.{f.name}": f.hint
        for group in GROUPS
        for option in options(group)
        for f in component_fields(group, option)[0]
    },
}
OTHER_KEYS = [
    *("resume_as", "scale", "experiment", "config", "tune", "grid", "paper", "rule.name"),
    *("tune.trials", "tune.compare", "tune.space", "tune.space.rule.choices", "grid.axes"),
    *("tune.space.clip.C.low", "tune.space.train.lr", "tune.space.train.steps.high", "seed.x"),
]
ODD_TEXTS = [
    *("", " ", "~", "null", "yes", "off", "=", "<<", "???", "\\???", "-", "*", "&a [*a]", "!"),
    *("[", "{", "[]", "{}", "{0}", "{a}", "[[", "[1,", "{a: 1, a: 2}", "{? [a] : b}", "[1,2]"),
    *("[[1],[2]]", "[none,arc]", "[sf,sf]", "[a,[b]]", "{name: krum}", "{name: 5}", "{f: {f: 1}}"),
    *("${", "${}", "${seed}", "${nothing}", "${a${b}}", "${oc.env:HOME}", "$", "\\${seed}"),
    *("${train}", "${rule.f}", "a${seed}b", "${rule}${rule}", "[${seed}, ${train.lr_values}]"),
    *("!!int x", "!!float x", "!!timestamp 2020-01-01", "!!binary =", "!!set {a}", "!x y"),
    *("!!python/name:os.system", "!!python/object/apply:os.system ['touch RAN']", "2020-01-01"),
    *("abc.ABC", "os.system", "subprocess.Popen", "collections.OrderedDict", "builtins.eval"),
    *("lit_byz.robust.Rule", "lit_byz.robust.CWTM", "lit_byz.nothing.X", "lit_byz..x", ".x", "x."),
    *("torch.nn.Module", "torch.Tensor", "numpy.ndarray", "no_such_module.X", "a.b@c", "é.ü"),
    *("foe@published", "foe@", "@", "sf@grid", "foe@foe@foe", "../../x", "/etc/passwd", "a/../b"),
    *("C:\\x", "con", ".", "..", "x/y", "a\\b", "nan", ".nan", "inf", "-inf", ".inf", "1e300"),
    *("0", "-1", "1", "2", "3.5", "0x10", "010", "1_000", "1:30", "9" * 20, "9" * 5000, "1e-320"),
    *("0x" + "f" * 5000, "-" + "9" * 400, "a" * 300, "b" * 5000, "[" * 5000, "{a: " * 500, "1e999"),
    *("\ud800", "\udcff", "a\x00b", "\x1b[31m", "a\nb", "\u2028", "\ufeff", "\t", "%s", "é" * 150),
    *('"\\ud800"', '"\\0"', '"\\x1b"', "'", '"', "a: b: c", "a #b", "- a", "smoke", "auto", "new"),
    *(
        "postgresql://me:SECRET@host/db",
        "http://h/?password=SECRET",
        "sqlite:///x",
        "://",
        "a://:@",
    ),
]
texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=20))
numbers = st.one_of(
    st.integers(-(2**70), 2**70), st.integers(-3, 60), st.floats(), st.sampled_from([0.5, 1e38])
)
chosen = st.one_of(*(st.sampled_from(options(group)) for group in GROUPS))
leaves = st.one_of(numbers, texts, chosen, st.none(), st.booleans())
odd = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(texts, chosen), inner, max_size=3)
    ),
    max_leaves=8,
)


def _fitting(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return st.sampled_from(arguments)
    if is_sequence(hint):
        return st.lists(_fitting(arguments[0] if arguments else Any), max_size=2)
    if arguments:
        return st.one_of(*(_fitting(argument) for argument in arguments))
    by_type = {
        int: st.integers(0, 6),
        float: st.floats(0, 2) | st.sampled_from([0.1, 0.9, 1e38, 1e-40]),
        bool: st.booleans(),
        str: st.sampled_from(["x", "a b", "2024", "cwtm", "arc"]),
        type(None): st.none(),
    }
    return by_type.get(hint, st.just("x"))


def _mostly(usual: st.SearchStrategy[Any], *rare: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Five of six as usual."""
    return st.integers(0, 5).flatmap(lambda number: st.one_of(*rare) if number == 5 else usual)


def _listed(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A value, or several of them."""
    return _mostly(values, st.lists(values, min_size=1, max_size=3, unique_by=repr))


# A key and a value that may well be right.
fitting = _mostly(
    st.sampled_from(sorted(KEYS)).flatmap(
        lambda key: st.tuples(st.just(key), _listed(_fitting(KEYS[key])))
    ),
    st.sampled_from(GROUPS).flatmap(
        lambda group: st.tuples(st.just(group), _listed(st.sampled_from(options(group))))
    ),
)
somewhat_odd = st.tuples(st.sampled_from([*KEYS, *GROUPS, *GROUPS, *OTHER_KEYS]), odd)
very_odd = st.tuples(st.one_of(st.sampled_from(ODD_TEXTS), st.text()), odd)


@dataclass(frozen=True)
class Asked:
    """One input of a command: arguments, the text of a file, and variables."""

    arguments: Sequence[str]
    file: str = ""
    variables: dict[str, str] = field(default_factory=dict)


def _typed(pair: tuple[str, Any]) -> str:
    """A setting as it is typed."""
    key, value = pair
    text = json.dumps(value) if isinstance(value, dict | list) else str(value)
    return f"{key}={'null' if value is None else text}"


_right = st.lists(fitting.map(_typed), max_size=4)
_wrong = st.one_of(
    st.just([]),
    _mostly(somewhat_odd.map(_typed), very_odd.map(_typed), texts).map(lambda word: [word]),
)
_words = st.builds(lambda right, wrong: [*right, *wrong], _right, _wrong)
# What a variable can hold: no zero, and of half characters those that stand for bytes.
_in_variables = st.one_of(
    texts, st.sampled_from(["/", ":", "/dev/null", ".", "x" * 5000, "a ,", "\udcff", "a,b.c"])
).filter(lambda text: "\x00" not in text and not any("\ud800" <= c < "\udc80" for c in text))
_variables = st.dictionaries(
    st.sampled_from(["LIT_BYZ_CONFIGS", "MLFLOW_TRACKING_URI", "LIT_BYZ_IMPORT"]),
    _in_variables,
    max_size=2,
)
command_lines = st.builds(Asked, arguments=_words, variables=_variables)


def _nested(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Settings as a file has them."""
    content: dict[str, Any] = {}
    for key, value in pairs:
        section, dot, name = key.partition(".")
        known = content.get(section, {})
        if dot and isinstance(known, dict):
            content[section] = {**known, name: value}
        else:
            content[section] = value
    return content


_traps = st.tuples(
    st.sampled_from(GROUPS), st.sampled_from([PROGRAM, f"{MODULE}.Any", {"name": f"{MODULE}.Any"}])
)
_pairs = _mostly(fitting, somewhat_odd, _traps)
_plain = st.lists(_pairs, max_size=4).map(_nested)
_axes = st.lists(
    _mostly(fitting, somewhat_odd).map(
        lambda pair: (pair[0], pair[1] if isinstance(pair[1], list) else [pair[1]])
    ),
    max_size=3,
).map(dict)
_points = st.lists(st.lists(fitting, max_size=2).map(dict), max_size=2)
_grid = st.fixed_dictionaries(
    {"axes": _axes},
    optional={
        "when": st.lists(st.builds(lambda c, a: {"if": dict([c]), "axes": a}, fitting, _axes)),
        "zip": st.lists(_axes, max_size=1),
        "exclude": _points,
        "also": _points,
        "x": odd,
    },
)
_tune = st.fixed_dictionaries(
    {},
    optional={
        "space": st.one_of(odd, st.lists(fitting, max_size=2).map(dict)),
        "trials": leaves,
        "compare": odd,
    },
)
_whole = st.builds(
    lambda plain, more: {**plain, **more},
    _plain,
    st.one_of(st.just({}), _grid.map(lambda g: {"grid": g}), _tune.map(lambda t: {"tune": t})),
)
_pieces = st.lists(
    st.one_of(
        texts,
        st.sampled_from(sorted(KEYS)).map(lambda key: f"\n{key}: "),
        st.sampled_from(["\n", " ", "- ", "  ", "train: {", "}"]),
    ),
    max_size=12,
).map("".join)
_alias = "".join(f"b{i}: &b{i} [*a, *a]\na{i}: &a [*b{i}, *b{i}]\n" for i in range(40))
_wide = ", ".join(f"s{i}: [1, 2, 3]" for i in range(40))
_circle = "'${trainer.callbacks}', " * 200
_bombs = st.sampled_from(
    [
        f"a: &a [x, x]\n{_alias}",
        f"train: {{lr_values: [{_circle}]}}\ntrainer: {{callbacks: [{_circle}]}}",
        f"grid: {{axes: {{{_wide}}}, exclude: [{{s0: 1}}]}}",
        f"grid: {{axes: {{a{'.a' * 3000}: [1]}}}}",
        "- " * 2000,
        "? " * 2000,
    ]
)
_written = _whole.map(lambda content: yaml.safe_dump(content, allow_unicode=True))
files = st.builds(
    Asked,
    arguments=st.lists(fitting.map(_typed), max_size=1),
    file=_mostly(_written, _pieces, _bombs),
    variables=_variables,
)
