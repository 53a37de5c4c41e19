"""No ratio of the benchmark may worsen by much against what stands in ``ratios.json``.

What a processor with the same instructions shows differs by less than the margin; a kernel that is
not taken any more, or a copy too many in every step, by more. After a change that is faster, or a
new instruction set: ``python -m tests.benchmark.test_guard`` writes this machine's ratios.
"""

import json
from pathlib import Path

import pytest

from lit_byz._native import instructions
from lit_byz.benchmark import guard

RATIOS = Path(__file__).with_name("ratios.json")
MARGIN = 1.6
ATTEMPTS = 4
NAMES = (*guard.ATTACKS, guard.SERVER)


def reference(name: str) -> float:
    """The committed ratio for this instruction set, or the worst of all where it has none."""
    known = json.loads(RATIOS.read_text())
    found = known.get(instructions()) or {n: max(r[n] for r in known.values()) for n in NAMES}
    return float(found[name])


def test_every_ratio_has_its_reference() -> None:
    assert all(0 < reference(name) < 10 for name in NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_ratio_worsens(name: str) -> None:
    most = MARGIN * reference(name)
    tried = []
    for _ in range(ATTEMPTS):
        tried.append(guard.ratio(name))
        if tried[-1] <= most:
            return
    pytest.fail(f"{name}: {tried}, at most {most:.3g} with {instructions()}")


def main() -> None:
    """Write the ratios of this machine for the instructions in use."""
    known = json.loads(RATIOS.read_text()) if RATIOS.exists() else {}
    known[instructions()] = {
        name: round(min(guard.ratio(name) for _ in range(3)), 4) for name in NAMES
    }
    RATIOS.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
