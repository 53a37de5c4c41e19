"""A data set of one's own: scikit-learn's digits in their own size, odd or even.

python pipelines/train.py dataset=examples.own_dataset.OddOrEven partition=dirichlet partition.alpha=0.5 model=logreg train.steps=50
python pipelines/sweep.py dataset=examples.own_dataset.OddOrEven attack=[sf,foe] clip=[none,arc] train.steps=50 --dry-run

What its images are stands in class attributes; ``read`` gives them as bytes. Transforms, partitions,
held-out validation images and the models' sizes follow from that.
"""  # noqa: E501  (a command is one line)

from pathlib import Path

import numpy as np

from lit_byz.data import Dataset, RawImages


class OddOrEven(Dataset):
    """1797 handwritten digits, 8 × 8, in two classes: even and odd."""

    classes = 2
    shape = (1, 8, 8)
    mean = (0.305,)
    std = (0.376,)

    def read(self, root: str | Path | None) -> RawImages:
        """``root`` is ``data.root``, the folder where files of one's own would lie."""
        from sklearn.datasets import load_digits

        digits = load_digits()
        shades, labels = digits.images, digits.target.astype(np.int64) % 2
        images = np.round(shades * (255 / 16)).astype(np.uint8)[:, np.newaxis]
        last = 1440  # the others are the test set; the file's order is no order of classes
        return RawImages(images[:last], labels[:last], images[last:], labels[last:])
