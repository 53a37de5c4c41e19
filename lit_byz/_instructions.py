"""Which of the processor's instructions compiled code is made of.

The widest that the processor has, unless ``LIT_BYZ_ISA`` names others. Results differ in rounding
only; what a slower processor would take can so be measured, and tested, on a faster one.
"""

import os
import platform
from functools import cache
from typing import NamedTuple

from lit_byz._processor import cpuinfo
from lit_byz.errors import BadRequest

VARIABLE = "LIT_BYZ_ISA"


class Instructions(NamedTuple):
    """A set of instructions: what the processor must say of itself, and what the compiler is told.

    ``title`` is the set's name in words, empty for what every processor of its kind has.
    """

    title: str
    needs: frozenset[str]
    flags: tuple[str, ...]


_AVX2 = ("avx2", "fma", "bmi1", "bmi2", "f16c")
_AVX512 = ("avx512f", "avx512dq", "avx512bw", "avx512vl")
_MADE_FOR_AVX2 = ("-mavx2", "-mfma", "-mbmi", "-mbmi2", "-mf16c")

# The widest first.
KNOWN = {
    "avx512": Instructions(
        "AVX-512",
        frozenset((*_AVX2, *_AVX512)),
        (*_MADE_FOR_AVX2, *(f"-m{name}" for name in _AVX512), "-mprefer-vector-width=512"),
    ),
    "avx2": Instructions("AVX2", frozenset(_AVX2), _MADE_FOR_AVX2),
    "neon": Instructions("NEON", frozenset({"asimd"}), ()),
    "plain": Instructions("", frozenset(), ()),
}


@cache
def _told() -> frozenset[str]:
    """What the processor says of itself; nothing where the system does not pass it on."""
    told = cpuinfo("flags", "Features").split()
    if told:
        return frozenset(told)
    return frozenset({"asimd"} if platform.machine() in ("arm64", "aarch64") else ())


def available() -> tuple[str, ...]:
    """The sets of instructions that this processor has, the widest first."""
    return tuple(name for name, known in KNOWN.items() if known.needs <= _told())


def chosen() -> str:
    """The set that compiled code uses: the widest, or what ``LIT_BYZ_ISA`` names."""
    asked, there = os.environ.get(VARIABLE), available()
    if not asked:
        return there[0]
    if asked not in there:
        why = "this processor does not have it" if asked in KNOWN else "it is not known"
        raise BadRequest(f"{VARIABLE}={asked}: {why}; choose one of {', '.join(there)}")
    return asked
