"""Models by name. Each takes the images' shape and the number of classes, and sizes itself to them.

>>> from lit_byz.models import MODELS, parameter_count
>>> parameter_count(MODELS["cnn_mnist"](shape=(1, 28, 28), classes=10))
431080

A model says what it returns in its class attribute ``output``: ``"log_probabilities"`` or
``"logits"``. A user's own model is any ``nn.Module`` class, named in a config by its dotted path;
its constructor gets ``shape`` and ``classes`` if it has arguments of these names.
"""

from lit_byz.models._cnn import CNNCifar, CNNMnist
from lit_byz.models._initialise import initialise, is_unsized, parameter_count
from lit_byz.models._linear import MLP, LogisticRegression
from lit_byz.models._registry import MODELS
from lit_byz.models._resnet import ResNet18

__all__ = [
    "MLP",
    "MODELS",
    "CNNCifar",
    "CNNMnist",
    "LogisticRegression",
    "ResNet18",
    "initialise",
    "is_unsized",
    "parameter_count",
]
