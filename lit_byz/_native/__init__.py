"""Compiled code: built once per machine, absent where nothing compiles.

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
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from lit_byz._cache import is_own, private_folder
from lit_byz._native._signatures import SUFFIX, declare

__all__ = ["SUFFIX", "function", "library", "plain_torch"]

HERE = Path(__file__).parent
SWITCH = "LIT_BYZ_COMPILE"
SOURCES = tuple(HERE / f"{name}.cpp" for name in ("columns", "small", "convolution"))
HEADERS = (HERE / "parallel.h",)
# Comparisons may assume finite numbers; sums keep their order, so results do not depend on flags.
FLAGS = (
    *("-O3", "-std=c++17", "-fPIC", "-pthread", "-fno-strict-aliasing"),
    *("-fno-math-errno", "-ffinite-math-only", "-fno-signed-zeros"),
)


def _machine() -> str:
    """What a native build depends on: the same cache may serve several machines."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return platform.machine() + line
    except OSError:
        pass
    return platform.machine() + platform.processor() + platform.node()


def _compiler() -> str | None:
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    return None


def _openmp(compiler: str) -> tuple[str, ...]:
    """The flag for GNU OpenMP, where the compiled code will find torch's own copy of it loaded.

    The loader takes a library that is there by its name. A copy under another name, or another
    OpenMP, would bring a second set of threads: plain threads are better than that.
    """
    if not (Path(torch.__file__).parent / "lib" / "libgomp.so.1").exists():
        return ()
    asked = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return ("-fopenmp",) if "Free Software Foundation" in asked.stdout else ()


@contextmanager
def _place() -> Iterator[Path]:
    """The folder of compiled files: in the user's cache, or else a new one for a moment."""
    try:
        kept = private_folder("kernels")
    except OSError as error:
        _warn(f"compiled kernels are not kept: {error}")
        with tempfile.TemporaryDirectory(prefix="lit_byz-") as folder:
            yield Path(folder)
    else:
        yield kept


def _build(compiler: str, place: Path) -> Path:
    source = b"".join(path.read_bytes() for path in (*SOURCES, *HEADERS))
    flags = (*FLAGS, *_openmp(compiler))
    described = repr((flags, compiler, torch.__version__, _machine()))
    key = hashlib.sha256(source + described.encode()).hexdigest()[:20]
    target = place / f"{key}.so"
    if target.exists() and is_own(target):
        return target
    with tempfile.TemporaryDirectory(dir=place) as folder:
        for native in ("-march=native", "-mcpu=native", None):
            try:
                product = _compile([compiler, *flags, *([native] if native else [])], Path(folder))
            except OSError as error:
                failure = error
            else:
                product.chmod(0o700)
                product.replace(target)
                return target
    raise failure


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
    return None if os.environ.get(SWITCH) == "0" else _loaded()


@contextmanager
def plain_torch() -> Iterator[None]:
    """No compiled kernels in this process meanwhile, as with ``LIT_BYZ_COMPILE=0``."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = "0"
    library.cache_clear()
    try:
        yield
    finally:
        if before is None:
            del os.environ[SWITCH]
        else:
            os.environ[SWITCH] = before
        library.cache_clear()


# Apart from the switch, so that switching back and forth costs nothing.
@functools.cache
def _loaded() -> ctypes.CDLL | None:
    compiler = _compiler()
    if compiler is None:
        return None
    try:
        with _place() as place:
            return declare(ctypes.CDLL(str(_build(compiler, place))))
    except OSError as error:
        _warn(f"no compiled kernels, using plain torch: {error}")
        return None


def _warn(message: str) -> None:
    """One line, without a line of source below it."""
    warnings.warn_explicit(" ".join(message.split()), UserWarning, __package__ or "", 0)


def function(name: str, dtype: torch.dtype) -> Any:
    """A compiled function for numbers of this type; only where :func:`library` is not None."""
    return getattr(library(), f"{name}_{SUFFIX[dtype]}")
