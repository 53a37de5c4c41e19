"""Small models for tests: the layers of the paper's CIFAR-10 network, and some odd ones."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from lit_byz.models import CNNMnist, LogisticRegression, initialise


def normed(dropout: float = 0.0) -> nn.Module:
    """C-R-B-C-R-B-M-D-L-R-D-L-S on 28 × 28, as ``cnn_cifar``, and small."""
    return nn.Sequential(
        nn.Conv2d(1, 3, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.BatchNorm2d(3),
        nn.Conv2d(3, 4, kernel_size=3, padding=1, stride=2),
        nn.ReLU(),
        nn.BatchNorm2d(4),
        nn.MaxPool2d(2),
        nn.Dropout(dropout),
        nn.Flatten(),
        nn.Linear(4 * 7 * 7, 8),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(8, 10),
        nn.LogSoftmax(dim=-1),
    )


def dropping() -> nn.Module:
    """Dropout without batch norm: every method of computing gradients takes it."""
    return nn.Sequential(
        nn.Conv2d(1, 4, kernel_size=5, stride=3),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.Linear(256, 12),
        nn.Dropout(0.5),
        nn.Linear(12, 10),
        nn.LogSoftmax(dim=-1),
    )


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 16), nn.ReLU(), nn.Linear(16, 10), nn.LogSoftmax(dim=-1)
    )


class Odd(nn.Module):
    """Layers that only autograd knows how to differentiate: recurrent, tied, used as functions."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(28, 6, batch_first=True)
        self.scale = nn.Parameter(torch.tensor(1.5))  # no dimension at all
        self.unused = nn.Linear(2, 3)
        self.head = nn.Linear(6, 10)

    def forward(self, images: Tensor) -> Tensor:
        states, _ = self.rnn(images.squeeze(1))
        return self.scale * functional.linear(states[:, -1], self.head.weight, self.head.bias)


class Doubled(nn.Linear):
    """A linear layer that is not what its class says."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class UsedTwice(nn.Module):
    """One dropout layer in two places, as many models have it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(784, 20), nn.Linear(20, 10)
        self.drop = nn.Dropout(0.5)

    def forward(self, images: Tensor) -> Tensor:
        return self.second(self.drop(self.first(self.drop(images.flatten(1))).relu()))


class Centred(nn.Module):
    """Subtracts the mean over the batch: its examples are not independent."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(784, 10)

    def forward(self, images: Tensor) -> Tensor:
        flat = images.flatten(1)
        return self.head(flat - flat.mean(0))


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(28, 28), nn.Linear(28, 28)
        self.second.weight = self.first.weight
        self.head = nn.Linear(28, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.second(self.first(images.squeeze(1)).tanh()).mean(1))


class AsFunction(nn.Module):
    """Uses a layer's weight without calling the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(784, 8), nn.Linear(8, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(images.flatten(1) @ self.first.weight.T)


def repeated() -> nn.Module:
    """One layer in two places."""
    layer = nn.Linear(784, 784)
    return nn.Sequential(nn.Flatten(), layer, nn.ReLU(), layer, nn.Linear(784, 10))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "logreg": LogisticRegression,
    "mlp": mlp,
    "cnn_mnist": CNNMnist,
    "dropping": dropping,
    "normed": normed,
    "normed_dropping": lambda: normed(0.25),
    "odd": Odd,
}


def make(name: str, seed: int = 3) -> nn.Module:
    return initialise(MODELS[name], seed)
