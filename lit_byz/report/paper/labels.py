"""The paper's picture of heterogeneity: how the labels lie among the honest workers."""

from typing import TYPE_CHECKING

from lit_byz.report.paper.experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEED = 1


def draw_labels(experiment: Experiment) -> "Figure":
    """A row for each data set, a panel for each α: the share of every label that a worker has."""
    import numpy as np
    from matplotlib.figure import Figure

    from lit_byz.data import DATASETS, PARTITIONS, label_counts

    rows = experiment.pictures
    columns = max(len(row["alphas"]) for row in rows)
    figure = Figure(figsize=(4.2 * columns, 3.2 * len(rows) + 0.5), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for places, row in zip(axes, rows, strict=True):
        labels = np.asarray(DATASETS[row["dataset"]]().load().train_labels)
        classes = int(labels.max()) + 1
        for place in places[len(row["alphas"]) :]:
            place.remove()
        for place, alpha in zip(places, row["alphas"], strict=False):
            partition = PARTITIONS["dirichlet"](alpha=alpha)
            parts = partition(labels, row["honest"], SEED)
            counts = label_counts(parts, labels, classes)
            bottom = np.zeros(row["honest"])
            for label in range(classes):
                style = {"bottom": bottom, "width": 0.85, "label": str(label)}
                place.bar(range(row["honest"]), counts[:, label], **style)
                bottom += counts[:, label]
            place.set_title(f"{row['dataset']}, α = {alpha:g}, seed {SEED}", fontsize=9)
            place.set_xlabel("honest worker", fontsize=8)
            place.set_ylabel("training images by label", fontsize=8)
            place.tick_params(labelsize=7)
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(
        handles, names, title="label", loc="outside right upper", fontsize=8, title_fontsize=8
    )
    figure.suptitle(f"{experiment.place}. {experiment.shows}", fontsize=9)
    return figure
