import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from lit_byz.data import Digits, Dirichlet, label_counts
from lit_byz.data.figure import label_figure, label_table, save_label_figure


@pytest.fixture
def counts() -> np.ndarray:
    labels = Digits().load().train_labels
    return label_counts(Dirichlet(0.1)(labels, 10, 1), labels, 10)


def test_a_bubble_for_each_worker_and_label_with_area_by_number(counts: np.ndarray) -> None:
    bubbles = label_figure(counts, "digits").axes[0].collections[0]
    places = np.asarray(bubbles.get_offsets()).astype(int)
    assert {tuple(place) for place in places} == {tuple(at) for at in np.argwhere(counts)}
    areas = np.asarray(bubbles.get_sizes())
    drawn = counts[places[:, 0], places[:, 1]]
    np.testing.assert_allclose(areas / areas.max(), drawn / drawn.max())


@pytest.mark.parametrize("classes", [2, 10, 30])
def test_a_picture_of_any_number_of_classes(tmp_path: Path, classes: int) -> None:
    path = tmp_path / "below" / "labels.png"
    save_label_figure(np.ones((3, classes), int), "even", path)
    with Image.open(path) as picture:
        colours = picture.convert("RGB").getcolors(maxcolors=picture.width * picture.height)
    assert len(colours) > classes


def test_the_table_has_every_number(counts: np.ndarray) -> None:
    console = Console(width=1000, file=io.StringIO(), record=True)
    console.print(label_table(counts * 1000, "digits"))
    rows = [line.split() for line in console.export_text().splitlines()]
    for worker, row in enumerate(counts * 1000):
        cells = [str(count) if count else "·" for count in row]
        assert [str(worker), *cells, str(row.sum())] in rows
    assert ["all", *["144000"] * 10, "1440000"] in rows
