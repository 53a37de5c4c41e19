"""The catalogue has every figure and table of the paper, and each of its experiments resolves."""

import re
from pathlib import Path

import pytest

from lit_byz._door import here
from lit_byz.config.sources import config_dir
from lit_byz.errors import BadRequest
from lit_byz.report.paper.experiment import WITHOUT_RUNS, catalogue, find
from tests._each import each

# The labels of the figures and of the tables of results in the paper's source, in its order.
FIGURES = [
    "fig_breakdown_mnist_intro",
    "fig_initial_mnist_intro",
    "fig_static_clipping_main",
    "fig_arc_vs_no_clip_varying_hetero",
    "fig_breakdown_mnist_f=1",
    "fig_breakdown_mnist_alpha=0.5",
    "fig_initial_mnist",
    "fig_data_heterogeneity",
    "fig_plots_mnist_comparison",
    "fig_plots_mnist_app_c_t",
    "fig_plots_mnist_app",
    "fig_plots_fashion",
    "fig_breakdown_mnist_app_alpha",
    "fig_breakdown_mnist_app_f",
    "fig_mnist_app_f=1_extreme",
    "fig_mnist_app_f=3_0.1",
    "fig_mnist_app_LF",
    "fig_plots_mnist_large",
    "fig_plots_mnist_large_2",
    "fig_plots_mnist_large_3",
    "fig_breakdown_mnist_rebuttal",
    "fig_breakdown_fashion_mnist_app_f",
    "fig_breakdown_fashion_mnist_app_alpha",
    "fig_breakdown_cifar_app_alpha",
    "fig_cifar_app_alpha=0.075",
    "fig_arc_vs_no_clip_varying_hetero_rebuttal",
    "fig_arc_vs_no_clip_varying_hetero_rebuttal_3",
    "fig_runtime_comparison",
]
TABLES = [
    "table_cifar_main",
    "table_cifar_cwtm",
    "table_cifar_cwmed",
    "table_cifar_app",
    "table_cifar_rebuttal",
    "table_cifar_rebuttal_2",
]
SEEDS = 5
FILES = sorted((config_dir() / "experiment" / "paper").glob("*.yaml"))


def test_every_figure_and_table_is_there_in_the_papers_order() -> None:
    assert [e.label for e in catalogue() if e.label] == [*FIGURES, *TABLES]
    numbers = {re.sub(r"\D", "", e.place) for e in catalogue() if e.place.startswith("Figure")}
    assert numbers == {str(number) for number in range(1, 27)}


@each("path", FILES)
def test_a_file_says_what_it_is(path: Path) -> None:
    """Its header names figure, runs and command; each of FOE and ALIE is there at both strengths.

    The seeds of an experiment are alike, so one of them is counted.
    """
    experiment = find(f"paper/{path.stem}", ["seed=[1]"])
    head = path.read_text(encoding="utf-8").split("paper:\n", maxsplit=1)[0]
    assert head.startswith(f"# {experiment.place}: ")
    assert f"# Command: {experiment.command.removesuffix(' seed=[1]')}\n" in here(head)
    assert "# Paper: " in head
    if experiment.kind in WITHOUT_RUNS:
        assert not experiment.points
        return
    stated = re.search(r"# Runs: ([\d,]+), about [\d.,]+ hours on two cores", head)
    assert stated is not None
    assert int(stated[1].replace(",", "")) == SEEDS * len(experiment.points)
    attacks = {point.attack for point in experiment.points}
    for name in ("foe", "alie"):
        assert (name in attacks) == (f"{name}@coarse" in attacks)


@each("path", FILES)
def test_a_smoke_test_is_small(path: Path) -> None:
    points = find(f"paper/{path.stem}", ["scale=smoke"]).points
    assert len(points) <= 50
    assert {point.steps for point in points} <= {10}
    assert {point.seed for point in points} <= {1}


def test_an_experiment_that_is_none_of_the_papers() -> None:
    with pytest.raises(BadRequest, match="is no figure or table of the paper"):
        find("quickstart")
