"""The compiled passes of ``_kernels.cpp``: built once per machine, absent where nothing compiles.

The first use compiles the file with the system's C++ compiler (about three seconds) into the
user's cache. Without a compiler, or with ``LIT_BYZ_COMPILE=0``, :func:`library` is None and the
callers take their plain torch path, which gives the same numbers up to rounding.
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
from pathlib import Path
from typing import Any

import torch

from lit_byz._cache import cache_folder

HERE = Path(__file__).parent
SOURCES = (HERE / "_kernels.cpp", HERE / "_small.cpp")
HEADERS = (HERE / "_parallel.h",)
# Comparisons may assume finite numbers; sums keep their order, so results do not depend on flags.
FLAGS = (
    *("-O3", "-std=c++17", "-shared", "-fPIC", "-pthread", "-fno-strict-aliasing"),
    *("-fno-math-errno", "-ffinite-math-only", "-fno-signed-zeros"),
)
WORTH_A_THREAD = 1 << 16
SUFFIX = {torch.float32: "f32", torch.float64: "f64"}


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


def _build(compiler: str) -> Path:
    source = b"".join(path.read_bytes() for path in (*SOURCES, *HEADERS))
    flags = (*FLAGS, *_openmp(compiler))
    described = repr((flags, compiler, torch.__version__, _machine()))
    key = hashlib.sha256(source + described.encode()).hexdigest()[:20]
    target = cache_folder("kernels") / f"{key}.so"
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        product = Path(folder) / target.name
        for native in (["-march=native"], ["-mcpu=native"], []):
            command = [compiler, *flags, *native, *map(str, SOURCES), "-o", str(product)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                product.replace(target)
                return target
    raise OSError(done.stderr.strip().splitlines()[-1] if done.stderr else "the compiler failed")


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels, or None where they are switched off or cannot be had."""
    compiler = _compiler()
    if os.environ.get("LIT_BYZ_COMPILE", "1") == "0" or compiler is None:
        return None
    try:
        return ctypes.CDLL(str(_build(compiler)))
    except OSError as error:
        warnings.warn(f"lit_byz: no compiled kernels, using plain torch: {error}", stacklevel=2)
        return None


def serves(x: torch.Tensor) -> bool:
    """Whether the compiled passes can read ``x``: (m, d) on the CPU with contiguous rows."""
    return (
        x.device.type == "cpu"
        and x.dtype in SUFFIX
        and x.dim() == 2
        and (x.stride(1) == 1 or x.shape[1] <= 1)
        and x.numel() > 0
        and library() is not None
    )


def pointer(x: torch.Tensor | None) -> Any:
    return None if x is None else ctypes.c_void_p(x.data_ptr())


def call(name: str, x: torch.Tensor, *arguments: Any) -> int:
    """Call ``name`` for the rows of ``x``; integers become 64-bit, the thread count goes last."""
    loaded = library()
    assert loaded is not None
    kinds = {int: ctypes.c_int64, float: ctypes.c_double}
    converted = [kinds[type(a)](a) if type(a) in kinds else a for a in arguments]
    rows, columns = x.shape
    shape = [ctypes.c_int64(x.stride(0)), ctypes.c_int64(rows), ctypes.c_int64(columns)]
    function = getattr(loaded, f"{name}_{SUFFIX[x.dtype]}")
    # Starting threads costs as much as a pass over this many numbers.
    threads = ctypes.c_int(torch.get_num_threads() if x.numel() >= WORTH_A_THREAD else 1)
    return int(function(pointer(x), *shape, *converted, threads) or 0)
