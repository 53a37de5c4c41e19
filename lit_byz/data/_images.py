"""Images in memory, and batches of them as the models take them."""

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
import torch
from torch import Tensor

from lit_byz.data._raw import RawImages


class ImageData:
    """A data set in memory: a batch is an index into one tensor of bytes, or of numbers.

    Bytes become ``(byte / 255 − mean) / std``, per channel, batch by batch; numbers, of any shape,
    ``(number − mean) / std``, per entry of their first dimension. With ``doubled`` the
    training set is followed by its horizontally flipped images: index ``train_size / 2 + i`` is
    image i flipped. With ``random_flip`` the caller of :meth:`train_batch` is expected to draw
    flips; they are an argument because only the caller knows which worker and round it is.
    """

    def __init__(
        self,
        raw: RawImages,
        *,
        mean: Sequence[float] = (0.0,),
        std: Sequence[float] = (1.0,),
        random_flip: bool = False,
        doubled: bool = False,
    ) -> None:
        self.random_flip = random_flip
        self.doubled = doubled
        self._train, self._test = (_in_memory(x) for x in (raw.train_images, raw.test_images))
        labels = torch.from_numpy(raw.train_labels)
        self.train_labels = torch.cat([labels, labels]) if doubled else labels
        self.test_labels = torch.from_numpy(raw.test_labels)
        channels, others = self._train.shape[1], [1] * (self._train.dim() - 2)
        unit = 255 if raw.bytes else 1
        scale = 1 / (unit * torch.tensor(std, dtype=torch.float64))
        shift = -torch.tensor(mean, dtype=torch.float64) / torch.tensor(std, dtype=torch.float64)
        self._scale = scale.float().expand(channels).reshape(channels, *others)
        self._shift = shift.float().expand(channels).reshape(channels, *others)
        self._identity = bool((self._shift == 0).all())

    @property
    def shape(self) -> tuple[int, ...]:
        """Channels, height, width of images; of other inputs whatever they have."""
        return tuple(self._train.shape[1:])

    @property
    def train_size(self) -> int:
        return len(self.train_labels)

    @property
    def test_size(self) -> int:
        return len(self.test_labels)

    @property
    def device(self) -> torch.device:
        return self._train.device

    def to(self, device: torch.device | str) -> Self:
        """Move the images, and so every batch, to ``device``; returns itself."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value.to(device))
        return self

    def train_batch(self, indices: Tensor, flips: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Images ``(*indices.shape, C, H, W)`` and labels ``indices.shape``.

        ``flips``, of the shape of ``indices``, says which of them to flip horizontally.
        """
        index = indices.to(self.device).reshape(-1)
        labels = self.train_labels.index_select(0, index)
        mirror = None if flips is None else flips.to(self.device).reshape(-1)
        if self.doubled:
            second = index >= len(self._train)
            index = index - second * len(self._train)
            mirror = second if mirror is None else mirror ^ second
        pixels = self._train.index_select(0, index)
        if mirror is not None:
            # Whole images are copied here, several times as fast as torch.where goes by bytes.
            both = torch.cat([pixels, pixels.flip(-1)])
            here = torch.arange(len(index), device=self.device)
            pixels = both.index_select(0, here + mirror * len(index))
        images = self._normalise(pixels)
        return images.view(*indices.shape, *self.shape), labels.view(indices.shape)

    def test_batches(self, size: int = 1000) -> Iterator[tuple[Tensor, Tensor]]:
        """The test set in order, in batches of ``size``; never flipped."""
        for start in range(0, self.test_size, size):
            part = slice(start, start + size)
            yield self._normalise(self._test[part]), self.test_labels[part]

    def _normalise(self, pixels: Tensor) -> Tensor:
        # A copy, whatever the type: the data set itself stays as it is.
        images = pixels.to(torch.float32, copy=True).mul_(self._scale)
        return images if self._identity else images.add_(self._shift)


def _in_memory(inputs: np.ndarray) -> Tensor:
    """Bytes as they are, numbers in the precision that models compute with."""
    if inputs.dtype != np.uint8:
        inputs = inputs.astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray(inputs))
