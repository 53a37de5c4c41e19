"""The compiled functions as the sources export them, and as they are declared to Python."""

import ctypes
import os
import re
from typing import Any

import pytest
import torch

from lit_byz import _native
from lit_byz._native import _signatures
from tests._each import each

pytestmark = pytest.mark.compiler

SOURCE = "\n".join(
    path.read_text().replace("\\\n", "\n") for path in (*_native.SOURCES, *_native.HEADERS)
)
TYPES = {
    "float": torch.float32,
    "double": torch.float64,
    "int8_t": torch.int8,
    "int32_t": torch.int32,
    "uint8_t": torch.bool,  # which torch keeps in a byte
}
RESULTS = {"int": ctypes.c_int, "void": None}
VALUES = {"int": ctypes.c_int, "int64_t": ctypes.c_int64, "double": ctypes.c_double}
STRUCTS = {"Shape": _signatures.SHAPE, "Places": _signatures.PLACES}


def exported() -> dict[str, tuple[str, list[str]]]:
    """The results and the arguments' C types of all functions with C names, templates expanded."""
    found = {}
    for result, name, listed in re.findall(
        r'extern "C" (\w+) (\w+?(?:##NAME)?)\(([^)]*)\)', SOURCE
    ):
        arguments = [" ".join(argument.split()) for argument in listed.split(",")]
        variants = [("float", "f32"), ("double", "f64")] if name.endswith("##NAME") else [("", "")]
        for kind, suffix in variants:
            types = [re.sub(r"\bT\b", kind, a) for a in arguments]
            found[name.removesuffix("##NAME") + suffix] = (result, types)
    return found


def agrees(declared: Any, argument: str) -> bool:
    """Whether a declared type is that of an argument such as ``const float *basis``."""
    kind, pointer, _ = re.fullmatch(r"(?:const )?(\w+) ?(\*?)(\w*)", argument).groups()
    if not pointer:
        return declared is VALUES[kind]
    if kind in STRUCTS:
        return declared is STRUCTS[kind]
    return isinstance(declared, _signatures.Numbers) and declared.dtype is TYPES[kind]


def test_every_exported_function_is_declared() -> None:
    functions = exported()
    assert len(functions) == 27
    assert set(functions) == set(_signatures.SIGNATURES)
    for name, (result, arguments) in functions.items():
        declared_result, declared = _signatures.SIGNATURES[name]
        assert declared_result is RESULTS[result], name
        assert len(declared) == len(arguments), name
        wrong = [a for d, a in zip(declared, arguments, strict=True) if not agrees(d, a)]
        assert not wrong, name


def test_structs_have_as_many_numbers_as_in_the_source() -> None:
    for name, declared in STRUCTS.items():
        body = re.search(rf"struct {name} {{(.*?)\n}};", SOURCE, re.DOTALL).group(1)
        fields = re.findall(r"^    int64_t ([\w, ]+);", body, re.MULTILINE)
        assert sum(len(field.split(",")) for field in fields) == declared._length_, name


def test_the_loaded_library_knows_its_types() -> None:
    library = _native.library()
    assert library is not None, "these tests need a C++ compiler"
    for name, (result, arguments) in _signatures.SIGNATURES.items():
        assert getattr(library, name).restype is result
        assert tuple(getattr(library, name).argtypes) == arguments


ROWS, OUT = torch.ones(2, 3), torch.zeros(2, 2, dtype=torch.float64)
RIGHT: list[Any] = [ROWS, 3, 2, 3, OUT, 1]


@each(
    "place, wrong",
    [
        (0, ROWS.double()),
        (0, ROWS.to("meta")),
        (0, ROWS.data_ptr()),
        (0, ROWS.numpy()),
        (0, None),
        (1, 3.0),
        (2, ROWS),
        (3, None),
        (4, OUT.float()),
        (5, 1.0),
    ],
)
def test_a_wrong_argument_raises(place: int, wrong: Any) -> None:
    gram = _native.function("gram", torch.float32)
    gram(*RIGHT)
    assert OUT.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    arguments = [*RIGHT[:place], wrong, *RIGHT[place + 1 :]]
    with pytest.raises(ctypes.ArgumentError, match=f"argument {place + 1}: "):
        gram(*arguments)


def test_a_struct_of_another_length_raises() -> None:
    image_gradients = _native.function("image_gradients", torch.float32)
    places, shape = (ctypes.c_int64 * 5)(), (ctypes.c_int64 * 14)()
    with pytest.raises(ctypes.ArgumentError, match="argument 4: "):
        image_gradients(ROWS, ROWS, places, shape, ROWS, 1)


def test_a_missing_argument_raises() -> None:
    with pytest.raises(TypeError, match="at least 6 arguments"):
        _native.function("gram", torch.float32)(*RIGHT[:-1])


@pytest.mark.parametrize("setting", [None, "1"])
def test_plain_torch_for_a_while(setting: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIT_BYZ_COMPILE", raising=False)
    if setting is not None:
        monkeypatch.setenv("LIT_BYZ_COMPILE", setting)
    before = _native.library()
    assert before is not None
    with _native.plain_torch():
        assert _native.library() is None
    assert _native.library() is before
    with pytest.raises(ZeroDivisionError), _native.plain_torch():
        raise ZeroDivisionError
    assert _native.library() is before
    assert os.environ.get("LIT_BYZ_COMPILE") == setting
