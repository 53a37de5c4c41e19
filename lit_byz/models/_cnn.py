"""The paper's two convolutional networks, with the layers that give its parameter counts."""

from collections.abc import Sequence

from torch import Tensor, nn

from lit_byz.models._registry import MODELS, check_images


@MODELS.register("cnn_mnist")
class CNNMnist(nn.Module):
    """The paper's CNN for MNIST and Fashion-MNIST: 431,080 parameters on 1 x 28 x 28 images.

    C(20)-R-M-C(50)-R-M-L(500)-R-L(10)-S with kernel 5 and padding 0. The layer string printed in
    the paper, C(20)-C(20), has 176,050 parameters; the count decides.
    """

    output = "log_probabilities"

    def __init__(self, shape: Sequence[int] = (1, 28, 28), classes: int = 10) -> None:
        super().__init__()
        # 16 x 16 is the smallest image of which two rounds of kernel 5 and pooling leave a pixel.
        channels, height, width = check_images("cnn_mnist", shape, classes, smallest=16)
        left_over = [((size - 4) // 2 - 4) // 2 for size in (height, width)]
        self.layers = nn.Sequential(
            nn.Conv2d(channels, 20, kernel_size=5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(20, 50, kernel_size=5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(50 * left_over[0] * left_over[1], 500),
            nn.ReLU(),
            nn.Linear(500, classes),
            nn.LogSoftmax(dim=-1),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


def _block(inputs: int, outputs: int, dropout: float) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.BatchNorm2d(outputs),
        nn.Conv2d(outputs, outputs, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.BatchNorm2d(outputs),
        nn.MaxPool2d(2),
        nn.Dropout(dropout),
    ]


@MODELS.register("cnn_cifar")
class CNNCifar(nn.Module):
    """The paper's CNN for CIFAR-10: 1,310,922 parameters on 3 x 32 x 32 images.

    C(64)-R-B-C(64)-R-B-M-D-C(128)-R-B-C(128)-R-B-M-D-L(128)-R-D-L(10)-S with kernel 3 and padding 1
    (kernel 5 and padding 0 would have 789,706 parameters; the count decides).
    """

    output = "log_probabilities"

    def __init__(
        self, shape: Sequence[int] = (3, 32, 32), classes: int = 10, dropout: float = 0.25
    ) -> None:
        super().__init__()
        channels, height, width = check_images("cnn_cifar", shape, classes, smallest=4)
        if not 0 <= dropout < 1:
            raise ValueError(f"cnn_cifar: dropout must be a number in [0, 1), got {dropout}")
        self.layers = nn.Sequential(
            *_block(channels, 64, dropout),
            *_block(64, 128, dropout),
            nn.Flatten(),
            nn.Linear(128 * (height // 4) * (width // 4), 128),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(128, classes),
            nn.LogSoftmax(dim=-1),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)
