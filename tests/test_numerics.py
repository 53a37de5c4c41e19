"""Results that stay what they are, or a new version of the numerics.

``python -m tests.test_numerics`` writes the results of this code into ``numerics.json``. It refuses
where they differ from those of the same version: raise ``NUMERICS`` in ``lit_byz/_numerics.py``
first, or ``numerics`` of the one class that they concern, so that no run of the old code is taken
for one of the new.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lit_byz import train
from lit_byz._numerics import NUMERICS
from lit_byz.attacks import ATTACKS
from lit_byz.config.components import options
from lit_byz.robust import CLIPS, MIXES, RULES

FILE = Path(__file__).with_name("numerics.json")
STEPS = 6
# Processors and their libraries differ in the last bits. In float64 these are so far behind that no
# choice of neighbours, or of a factor, turns on them within a few steps.
TOLERANCE = 1e-4
SMALL = ["dataset=digits", "workers.honest=6", "workers.f=2", "workers.batch_size=8", "seed=3"]
SMALL += [f"train.steps={STEPS}", "train.eval_every=3", "tracking.enabled=false"]
SMALL += ["trainer.precision=64-true"]
METRICS = ("train/loss", "attack/damage", "attack/factor", "server/output_norm", "clip/threshold")
NEEDED = {"static": ["clip.C=1"]}
# Zeros are as far from every vector that was clipped: neighbours would be a matter of rounding.
TIED = {"zero": ["mix=none"], "non_finite": ["mix=none"]}
CASES = {
    **{f"rule={name}": [] for name in RULES},
    **{f"attack={name}": TIED.get(name, []) for name in ATTACKS if name != "none"},
    **{f"clip={name}": NEEDED.get(name, []) for name in CLIPS},
    **{f"mix={name}": ["workers.f=1"] for name in MIXES},
    **{f"partition={name}": [] for name in options("partition")},
    "attack=foe@published": ["clip=none"],
    "attack=foe@coarse": [],
    "attack=alie@coarse": [],
    "attack.worker=2": ["attack=mimic"],
    "model=logreg": [],
    "model=cnn_mnist": ["workers.honest=4", "workers.f=1"],
    "train.weight_decay_mode=worker": ["train.momentum=0.5", "train.weight_decay=0.1"],
    "train.local_steps=2": [],
    "train.full_batch=true": [],
    "train.gradients=loop": [],
    "server.bound_output=true": [],
}


def results(case: str) -> dict[str, list[float]]:
    """What a few steps of training come to."""
    history = train([*SMALL, case, *CASES[case]]).history
    found = {name: [value for _, value in history[name]] for name in METRICS if name in history}
    return {**found, "test/loss": [value for _, value in history["test/loss"]]}


def versions() -> dict[str, int]:
    """The components whose own version is not the first."""
    named = {f"attack={name}": getattr(ATTACKS[name], "numerics", 1) for name in ATTACKS}
    for group, known in (("rule", RULES), ("clip", CLIPS), ("mix", MIXES)):
        named.update({f"{group}={name}": getattr(known[name], "numerics", 1) for name in known})
    return {name: version for name, version in named.items() if version != 1}


def differences(case: str, known: dict[str, list[float]]) -> list[str]:
    found = results(case)
    if found.keys() != known.keys():
        return [f"{case}: other metrics: {sorted(found)}"]
    return [
        f"{case}: {name} = {found[name]}, was {known[name]}"
        for name in known
        if found[name] != pytest.approx(known[name], rel=TOLERANCE, abs=1e-6)
    ]


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def test_every_component_has_results_of_this_version(recorded: dict[str, Any]) -> None:
    assert recorded["numerics"] == NUMERICS, "python -m tests.test_numerics writes them"
    assert recorded["components"] == versions(), "python -m tests.test_numerics writes them"
    assert recorded["results"].keys() == CASES.keys(), "python -m tests.test_numerics adds them"


# The parts that a paper is about in every run; the settings of training with the slow tests.
KINDS = sorted({case.partition("=")[0] for case in CASES})
QUICK = ("attack", "clip", "rule")


@pytest.mark.parametrize(
    "kind",
    [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS],
)
def test_results_are_those_of_this_version(kind: str, recorded: dict[str, Any]) -> None:
    cases = [case for case in CASES if case.partition("=")[0] == kind]
    known = recorded["results"]
    found = [line for case in cases for line in differences(case, known[case])]
    advice = "raise NUMERICS (or the class's own numerics), then python -m tests.test_numerics"
    assert not found, "\n".join([advice, *found])


def write() -> None:
    """Record the results of this code, unless they would pass for others."""
    old = json.loads(FILE.read_text()) if FILE.exists() else {"numerics": None, "results": {}}
    if old["numerics"] == NUMERICS:
        now, then = versions(), old.get("components", {})
        raised = {case for case in CASES if now.get(_bare(case)) != then.get(_bare(case))}
        known = {
            case: old["results"][case] for case in CASES if case in old["results"].keys() - raised
        }
        changed = [line for case in known for line in differences(_told(case), known[case])]
        if changed:
            sys.exit("\n".join([f"results differ from those of numerics {NUMERICS}:", *changed]))
        kept = known
    else:
        kept = {}
    made = {case: kept.get(case) or results(_told(case)) for case in CASES}
    found = {"numerics": NUMERICS, "components": versions(), "results": made}
    FILE.write_text(json.dumps(found, indent=1) + "\n")


def _told(case: str) -> str:
    """The case, once it is said that it comes next: all of them take minutes."""
    sys.stderr.write(f"{case}\n")
    return case


def _bare(case: str) -> str:
    """``attack=foe@coarse`` is of the component ``attack=foe``."""
    return case.partition("@")[0]


if __name__ == "__main__":
    write()
