"""No ratio of the benchmark may worsen by much against what stands in ``ratios.json``.

A kernel that is not taken any more, or a copy too many in every step, shows in these ratios by more
than the margin; what another processor, or a neighbour that uses the caches, does to them should
not. After a change that is faster, or for a new instruction set, on a machine that does nothing
else: ``python -m tests.benchmark.test_guard`` writes this machine's ratios.
"""

import json
from pathlib import Path

import pytest

from lit_byz._native import instructions, plain_torch
from lit_byz.benchmark import guard

RATIOS = Path(__file__).with_name("ratios.json")
ATTEMPTS = 4
NAMES = (*guard.ATTACKS, guard.SERVER)
# The server's pass is bound by memory, which a neighbour slows down more than ByzFL's sorting.
MARGINS = {**dict.fromkeys(guard.ATTACKS, 2.0), guard.SERVER: 3.0}


def reference(name: str) -> float:
    """The committed ratio for this instruction set, or the worst of all where it has none."""
    known = json.loads(RATIOS.read_text())
    found = known.get(instructions()) or {n: max(r[n] for r in known.values()) for n in NAMES}
    return float(found[name])


def most(name: str) -> float:
    """What a ratio may be."""
    return MARGINS[name] * reference(name)


def test_every_ratio_has_its_reference() -> None:
    assert all(0 < reference(name) < 10 for name in NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_ratio_worsens(name: str) -> None:
    tried = []
    for _ in range(ATTEMPTS):
        tried.append(guard.ratio(name))
        if tried[-1] <= most(name):
            return
    pytest.fail(f"{name}: {tried}, at most {most(name):.3g} with {instructions()}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["foe", guard.SERVER])
def test_kernels_that_are_not_taken_are_noticed(name: str) -> None:
    with plain_torch():
        worse = guard.ratio(name)
    assert worse > most(name)


def main() -> None:
    """Write the ratios of this machine for the instructions in use."""
    known = json.loads(RATIOS.read_text()) if RATIOS.exists() else {}
    known[instructions()] = {
        name: round(min(guard.ratio(name) for _ in range(3)), 4) for name in NAMES
    }
    RATIOS.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
