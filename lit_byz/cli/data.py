"""Fetch data sets, and show how they are divided among the honest workers.

python pipelines/data.py fetch mnist fashion_mnist cifar10 [--root DIR]
python pipelines/data.py show mnist partition=dirichlet partition.alpha=0.1 workers.honest=10
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lit_byz._door import here
from lit_byz._imports import allow_named
from lit_byz.cli.command import Parser, command, guarded
from lit_byz.data import DATASETS, deal, label_counts
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

if TYPE_CHECKING:
    from omegaconf import DictConfig

COMMANDS = ("fetch", "show")
SYMBOLS = {"alpha": "α", "gamma": "γ"}


def fetch(arguments: Sequence[str]) -> None:
    """Make sure that data sets are there and sound; one line for each."""
    parser = Parser("Fetch data sets and verify every byte of those that are there.")
    parser.prog += " fetch"
    parser.add_argument(
        "datasets", nargs="+", metavar="dataset", help=f"{', '.join(DATASETS)} or a dotted path"
    )
    parser.add_argument(
        "--root", help="folder for data; default: LIT_BYZ_DATA or a user cache folder"
    )
    parsed = parser.parse_args(arguments)
    allow_named(parsed.datasets)
    chosen = [DATASETS[name] for name in parsed.datasets]
    for dataset in chosen:
        print(dataset().fetch(parsed.root), flush=True)


def show(config: "DictConfig", options: argparse.Namespace) -> None:
    """Print who has how many points of each label, and draw it."""
    from rich.console import Console

    from lit_byz.config.components import build
    from lit_byz.data.figure import label_table, save_label_figure
    from lit_byz.report.drawing import FORMATS

    path = options.output
    if path is not None and path.suffix.removeprefix(".") not in FORMATS:
        raise BadRequest(f"--output {path}: its name must end in one of .{', .'.join(FORMATS)}")
    dataset = build("dataset", config.dataset)
    partition = build("partition", config.partition)
    images = dataset.load(config.data.root)
    share = config.data.validation
    parts = deal(images, partition, config.workers.honest, config.seed, share).parts
    counts = label_counts(list(parts), images.train_labels, dataset.classes)

    settings = {name: value for name, value in config.partition.items() if name != "redraws"}
    settings.pop("name")
    kind = config.partition.name
    described = ", ".join(
        f"{SYMBOLS.get(name, name)} = {value}" for name, value in settings.items()
    )
    held_out = [f"{share:g} held out"] if share else []
    title = ", ".join([dataset.name, described or kind, *held_out, f"seed {config.seed}"])
    if path is None:
        words = [dataset.name, kind, *(f"{name}{value}" for name, value in settings.items())]
        words += [f"h{config.workers.honest}", *(f"without{share:g}" for _ in held_out)]
        words.append(f"seed{config.seed}")
        # A text among the settings may hold anything; the file is in that folder.
        name = re.sub(r"[^\w.-]", "_", "-".join(words))[:150]
        path = Path("outputs", f"labels-{name}.png")
    save_label_figure(counts, title, path)
    # As wide as the table needs, whatever the terminal: a number must not be cut short.
    Console(width=10_000).print(label_table(counts, title))
    print(path)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["show"]:
        settings = arguments[1:]
        if settings and "=" not in settings[0] and not settings[0].startswith("-"):
            settings[0] = f"dataset={settings[0]}"
        if not any(word.startswith("workers.f=") for word in settings):
            settings.append("workers.f=0")  # data are dealt to honest workers alone
        return command(
            "Show how labels are distributed over honest workers.", show, _output, settings
        )
    return guarded(_fetch_or_help, arguments)


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, help="file of the picture; default: in outputs/")


def _fetch_or_help(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["fetch"]:
        fetch(arguments[1:])
    elif not arguments or {"-h", "--help"} & set(arguments):
        print(here(__doc__ or ""))
    else:
        raise BadRequest(f"unknown command '{arguments[0]}': {nearest(arguments[0], COMMANDS)}")
