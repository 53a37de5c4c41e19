"""ResNet-18 for small images.

torchvision's own is built for 224 x 224 images (7 x 7 stem, pooling) and works in place, which
per-worker gradients by ``torch.func`` do not take.
"""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from lit_byz.models._registry import MODELS, check_images


class _BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut, a 1 x 1 convolution where the size changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        inner = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(inner)) + self.shortcut(x))


@MODELS.register("resnet18")
class ResNet18(nn.Module):
    """ResNet-18 with a 3 x 3 stem and no stem pooling: 11,173,962 parameters on CIFAR-10.

    He et al., Deep Residual Learning for Image Recognition, 2016.
    """

    output = "logits"

    def __init__(self, shape: Sequence[int] = (3, 32, 32), classes: int = 10) -> None:
        super().__init__()
        channels, _, _ = check_images("resnet18", shape, classes)
        self.stem = nn.Sequential(
            nn.Conv2d(channels, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()
        )
        blocks: list[nn.Module] = []
        inputs = 64
        for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [_BasicBlock(inputs, outputs, stride), _BasicBlock(outputs, outputs, 1)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(512, classes)

    def forward(self, images: Tensor) -> Tensor:
        features = self.blocks(self.stem(images))
        return self.head(features.mean(dim=(-2, -1)))
