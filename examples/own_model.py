"""A model of one's own: any ``nn.Module``, made for the images of its data set.

python pipelines/train.py model=examples.own_model.SmallCNN model.channels=8 train.steps=50

``shape`` and ``classes`` come from the data set, all other arguments from the config. ``output``
says what is returned, so that ``train.loss=auto`` knows which loss belongs to it; no operation may
work in place, as gradients of all workers are computed at once.
"""

from collections.abc import Sequence

from torch import Tensor, nn


class SmallCNN(nn.Module):
    """One convolution, one pooling, one linear layer."""

    output = "logits"

    def __init__(self, shape: Sequence[int], classes: int, channels: int = 4) -> None:
        super().__init__()
        inputs, height, width = shape
        self.convolution = nn.Conv2d(inputs, channels, 3, padding=1)
        self.pool = nn.MaxPool2d(4)
        self.linear = nn.Linear(channels * (height // 4) * (width // 4), classes)

    def forward(self, images: Tensor) -> Tensor:
        found = self.pool(self.convolution(images).relu())
        return self.linear(found.flatten(1))
