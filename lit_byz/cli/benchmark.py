"""Measure speed against ByzFL and against plain torch, as ratios on the same data.

python pipelines/benchmark.py robust [--quick] [--out DIR] [--only cwtm gm figure]
python pipelines/benchmark.py attacks [--quick] [--out DIR] [--only cwtm gm]
python pipelines/benchmark.py step [--quick] [--out DIR] [--only sf foe tracking] [--markdown]
python pipelines/benchmark.py run [--quick] [--out DIR]
python pipelines/benchmark.py sweep [--quick] [--out DIR] [--only quickstart mnist]
python pipelines/benchmark.py scaling [--quick] [--out DIR] [--only n d factors memory]
python pipelines/benchmark.py strength [--quick] [--out DIR] [--only cwtm gm]
python pipelines/benchmark.py gradients [--quick] [--out DIR] [--only mlp]
python pipelines/benchmark.py gradients [--out DIR] [--only mlp] --write
python pipelines/benchmark.py cluster [--quick] [--out DIR] [--only paper/fig1a]
"""

import importlib
from collections.abc import Sequence

from lit_byz._door import here
from lit_byz.cli.command import Parser, guarded
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

# A module has DESCRIPTION, options(parser) and run(parsed); it is imported when it is asked for.
BENCHMARKS = {
    "attacks": "lit_byz.benchmark.attacks",
    "cluster": "lit_byz.benchmark.cluster",
    "gradients": "lit_byz.benchmark.gradients",
    "robust": "lit_byz.benchmark.robust",
    "run": "lit_byz.benchmark.run",
    "scaling": "lit_byz.benchmark.scaling",
    "step": "lit_byz.benchmark.step",
    "strength": "lit_byz.benchmark.strength",
    "sweep": "lit_byz.benchmark.sweep",
}


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(here(__doc__ or ""))
        return 0
    name, *rest = arguments
    if name not in BENCHMARKS:
        raise BadRequest(f"unknown benchmark '{name}': {nearest(name, BENCHMARKS)}")
    benchmark = importlib.import_module(BENCHMARKS[name])
    parser = Parser(benchmark.DESCRIPTION)
    parser.prog += f" {name}"
    benchmark.options(parser)
    return int(benchmark.run(parser.parse_args(rest)))


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(run, argv)
