"""Models without convolutions, for quick work."""

import itertools
from collections.abc import Sequence

from torch import Tensor, nn

from lit_byz._checks import check_integer
from lit_byz.models._registry import MODELS, check_inputs

MOST_LAYERS = 1000


@MODELS.register("logreg")
class LogisticRegression(nn.Module):
    """Multinomial logistic regression: one linear layer on the pixels or features."""

    output = "log_probabilities"

    def __init__(self, shape: Sequence[int] = (1, 28, 28), classes: int = 10) -> None:
        super().__init__()
        size = check_inputs("logreg", shape, classes)
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(size, classes), nn.LogSoftmax(dim=-1))

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


@MODELS.register("mlp")
class MLP(nn.Module):
    """Fully connected layers with ReLU between them; ``hidden`` gives their widths."""

    output = "log_probabilities"

    def __init__(
        self,
        shape: Sequence[int] = (1, 28, 28),
        classes: int = 10,
        hidden: Sequence[int] = (100,),
    ) -> None:
        super().__init__()
        size = check_inputs("mlp", shape, classes)
        for units in hidden:
            check_integer("mlp", "each width in hidden", units, 1)
        if len(hidden) > MOST_LAYERS:
            raise ValueError(
                f"mlp: hidden must have at most {MOST_LAYERS} widths, got {len(hidden)}"
            )
        widths = [size, *hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in itertools.pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        layers += [nn.Linear(widths[-1], classes), nn.LogSoftmax(dim=-1)]
        self.layers = nn.Sequential(*layers)

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)
