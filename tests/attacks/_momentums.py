"""Momentums of the paper's CNN on MNIST, each label held by few workers."""

import functools

import torch
from torch.nn.functional import nll_loss

from lit_byz.data import DATASETS, PARTITIONS, WorkerBatches
from lit_byz.models import MODELS, initialise

STEPS, BATCH, BETA, RATE = 6, 25, 0.9, 0.1


@functools.cache
def mnist_momentums(h: int) -> torch.Tensor:
    """What h honest workers send at step 6 of DSGD on extremely heterogeneous data: (h, 431080)."""
    images = DATASETS["mnist"]().load()
    model = initialise(MODELS["cnn_mnist"], seed=1)
    parts = PARTITIONS["extreme"]()(images.train_labels, h, 1)
    batches = WorkerBatches(images, parts, BATCH, seed=1)
    parameters = list(model.parameters())
    momentums = torch.zeros(h, sum(p.numel() for p in parameters))
    for t in range(STEPS):
        for momentum, x, y in zip(momentums, *batches.round(t), strict=True):
            gradients = torch.autograd.grad(nll_loss(model(x), y), parameters)
            gradient = torch.cat([g.reshape(-1) for g in gradients])
            momentum.mul_(BETA).add_(gradient, alpha=1 - BETA)
        with torch.no_grad():
            parts_of = momentums.mean(0).split([p.numel() for p in parameters])
            for parameter, move in zip(parameters, parts_of, strict=True):
                parameter.sub_(RATE * move.view_as(parameter))
    return momentums
