"""Train once: n workers, f of them Byzantine, and a robust server.

python pipelines/train.py dataset=mnist partition=extreme workers.f=1 clip=arc rule=cwtm attack=foe
python pipelines/train.py … resume=auto        goes on from the last checkpoint of the same run
"""

import argparse
import sys

from omegaconf import DictConfig

from lit_byz.experiment.cli import command


def run(config: DictConfig, options: argparse.Namespace) -> int:
    from lit_byz.experiment.run import train
    from lit_byz.experiment.summary import summary

    result = train(config, progress=not options.quiet)
    print(summary(config, result))
    return 130 if result.status == "interrupted" else 0


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="no progress, only the summary")


if __name__ == "__main__":
    sys.exit(command(__doc__ or "", run, options))
