"""Fashion-MNIST (Xiao, Rasul, Vollgraf, 2017): 60 000 + 10 000 pieces of clothing."""

from typing import ClassVar

from lit_byz.data._dataset import DATASETS
from lit_byz.data._idx import TEST_IMAGES, TEST_LABELS, TRAIN_IMAGES, TRAIN_LABELS, IdxDataset
from lit_byz.data._sources import DebianPackage, TorchvisionMirrors


@DATASETS.register("fashion_mnist")
class FashionMNIST(IdxDataset):
    """28 × 28 grey images of ten kinds of clothing, in [0, 1] without normalisation.

    With ``random_flip``, the default, a training image is flipped horizontally with probability
    1/2 whenever it is drawn.
    """

    classes = 10
    shape = (1, 28, 28)
    files: ClassVar = {
        TRAIN_IMAGES: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        TRAIN_LABELS: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        TEST_IMAGES: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        TEST_LABELS: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    }
    sources = (
        TorchvisionMirrors("FashionMNIST"),
        DebianPackage("dataset-fashion-mnist", size=30_900_652),
    )
    also_in = ("FashionMNIST/raw",)  # torchvision's own folder

    def __init__(self, random_flip: bool = True) -> None:
        self.random_flip = random_flip
