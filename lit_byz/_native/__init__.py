"""Compiled code: built once per set of instructions, absent where nothing compiles.

The first use compiles the folder's files with the system's C++ compiler (about four seconds) into
the user's cache. What is loaded from there is executed, so it must be a folder that no other user
can write to; else every process compiles for itself. Without a compiler, or with
``LIT_BYZ_COMPILE=0``, :func:`library` is None and the callers take their plain torch path, which
gives the same numbers up to rounding.
"""

import ctypes
import functools
import hashlib
import os
import platform
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from lit_byz._cache import TOLD, is_own, private_folder
from lit_byz._compiler import compiler
from lit_byz._instructions import KNOWN, VARIABLE, chosen
from lit_byz._native._signatures import SUFFIX, declare
from lit_byz._warn import warn

__all__ = ["SUFFIX", "function", "instructions", "library", "made_of", "plain_torch"]

HERE = Path(__file__).parent
SWITCH = "LIT_BYZ_COMPILE"
NAMES = ("columns", "convolution", "pooled", "probes", "sampling", "small")
SOURCES = tuple(HERE / f"{name}.cpp" for name in NAMES)
HEADERS = tuple(HERE / name for name in ("images.h", "lanes.h", "parallel.h"))
# Comparisons may assume finite numbers; sums keep their order, so results do not depend on flags.
FLAGS = (
    *("-O3", "-std=c++17", "-fPIC", "-pthread", "-fno-strict-aliasing"),
    *("-fno-math-errno", "-ffinite-math-only", "-fno-signed-zeros"),
)


def _openmp(compiler: str) -> tuple[str, ...]:
    """The flag for GNU OpenMP, where the compiled code will find torch's own copy of it loaded.

    The loader takes a library that is there by its name. A copy under another name, or another
    OpenMP, would bring a second set of threads: plain threads are better than that.
    """
    if not (Path(torch.__file__).parent / "lib" / "libgomp.so.1").exists():
        return ()
    asked = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return ("-fopenmp",) if "Free Software Foundation" in asked.stdout else ()


@functools.cache
def _flags(compiler: str, isa: str) -> tuple[str, ...]:
    return (*FLAGS, *KNOWN[isa].flags, *_openmp(compiler))


@contextmanager
def _place(compiler: str, isa: str) -> Iterator[Path]:
    """The compiled file: in the user's cache, or else in a folder that is there for a moment."""
    try:
        place = private_folder("kernels")
        target = place / _name(compiler, isa)
        if not (target.exists() and is_own(target)):
            with tempfile.TemporaryDirectory(dir=place):  # whether it can be written to
                pass
    except OSError as error:
        if TOLD not in os.environ:
            warn(f"compiled kernels are not kept: {error}")
        with tempfile.TemporaryDirectory(prefix="lit_byz-") as folder:
            yield Path(folder) / _name(compiler, isa)
    else:
        yield target


def _name(compiler: str, isa: str) -> str:
    """The compiled file's name, by what it is made of."""
    source = b"".join(path.read_bytes() for path in (*SOURCES, *HEADERS))
    described = repr((_flags(compiler, isa), compiler, torch.__version__, platform.machine()))
    return f"{isa}-{hashlib.sha256(source + described.encode()).hexdigest()[:20]}.so"


def _build(compiler: str, isa: str, target: Path) -> Path:
    if target.exists() and is_own(target):
        return target
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        product = _compile([compiler, *_flags(compiler, isa)], Path(folder))
        product.chmod(0o700)
        product.replace(target)
    return target


def _compile(command: list[str], folder: Path) -> Path:
    """The library, its files compiled at the same time."""
    objects = [str(folder / f"{source.stem}.o") for source in SOURCES]
    steps = [
        [
            [*command, "-c", str(source), "-o", o]
            for source, o in zip(SOURCES, objects, strict=True)
        ],
        [[*command, "-shared", *objects, "-o", str(folder / "library.so")]],
    ]
    for commands in steps:
        running = [subprocess.Popen(c, stderr=subprocess.PIPE, text=True) for c in commands]
        told = [process.communicate()[1] for process in running]
        for process, errors in zip(running, told, strict=True):
            if process.returncode != 0:
                raise OSError(errors.strip().splitlines()[-1] if errors else "the compiler failed")
    return folder / "library.so"


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels, or None where they are switched off or cannot be had."""
    isa = chosen()  # a wrong name is an error, whether or not anything is compiled
    return None if os.environ.get(SWITCH) == "0" else _loaded(isa)


def instructions() -> str:
    """What the kernels in use are made of, or ``torch`` where there are none."""
    return "torch" if library() is None else chosen()


@contextmanager
def _set(variable: str, value: str) -> Iterator[None]:
    """Kernels as with another value of an environment variable, in this process meanwhile."""
    before = os.environ.get(variable)
    os.environ[variable] = value
    library.cache_clear()
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
        library.cache_clear()


@contextmanager
def plain_torch() -> Iterator[None]:
    """No compiled kernels in this process meanwhile, as with ``LIT_BYZ_COMPILE=0``."""
    with _set(SWITCH, "0"):
        yield


@contextmanager
def made_of(isa: str) -> Iterator[None]:
    """Kernels of other instructions in this process meanwhile, as with ``LIT_BYZ_ISA``."""
    with _set(VARIABLE, isa):
        yield


# Apart from the switches, so that switching back and forth costs nothing.
@functools.cache
def _loaded(isa: str) -> ctypes.CDLL | None:
    command = compiler()
    if command is None:
        return None
    try:
        with _place(command, isa) as target:
            return declare(ctypes.CDLL(str(_build(command, isa, target))))
    except OSError as error:
        warn(f"no compiled kernels, using plain torch: {error}")
        return None


def function(name: str, dtype: torch.dtype) -> Any:
    """A compiled function for numbers of this type; only where :func:`library` is not None."""
    return getattr(library(), f"{name}_{SUFFIX[dtype]}")
