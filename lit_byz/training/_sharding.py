"""One run on several devices: who has which workers, and which columns of their vectors.

Every process computes the momentums of some honest workers, whole vectors. Before the server's
step they are dealt anew: each process gets some columns of all vectors. Inner products are then
sums of n × n matrices over the processes, coordinate-wise rules need no others, and the output's
columns are put together at the end. No process ever holds all n vectors.
"""

import itertools
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor

from lit_byz.attacks import Attack
from lit_byz.errors import BadRequest
from lit_byz.robust import CoordinateRule, GeometricRule, RobustAggregator


def cuts(size: int, parts: int) -> list[int]:
    """Where to cut ``size`` things into parts that differ by one at most.

    >>> cuts(7, 3)
    [0, 2, 4, 7]
    """
    return [size * part // parts for part in range(parts + 1)]


@dataclass
class Sharding:
    """This process's share of a run on ``size`` processes; ``sent`` counts the bytes it sends."""

    place: int
    size: int
    workers: int
    total: int
    sent: int = 0
    _rows: list[int] = field(init=False)
    _columns: list[int] = field(init=False)

    def __post_init__(self) -> None:
        if self.workers < self.size:
            raise BadRequest(
                f"trainer.devices = {self.size}: there are only {self.workers} honest workers"
            )
        self._rows, self._columns = cuts(self.workers, self.size), cuts(self.total, self.size)

    @property
    def own(self) -> slice:
        """The honest workers whose momentums are computed here."""
        return slice(self._rows[self.place], self._rows[self.place + 1])

    @property
    def start(self) -> int:
        return self._columns[self.place]

    @property
    def columns(self) -> slice:
        """The columns of all vectors that the server's step sees here."""
        return slice(self.start, self._columns[self.place + 1])

    def deal(self, rows: Tensor, into: Tensor) -> None:
        """Turn the own workers' vectors (own, d) into some columns of everybody's (h, columns)."""
        pieces = [rows[:, a:b].reshape(-1) for a, b in self._between(self._columns)]
        width = into.shape[1]
        counts = [(b - a) * width for a, b in self._between(self._rows)]
        found = rows.new_empty(sum(counts))
        self._exchange(pieces, found, counts)
        into.copy_(found.view(self.workers, width))

    def deal_sum(self, vector: Tensor) -> Tensor:
        """The sum of everybody's ``vector`` (d,), some columns of it."""
        pieces = [vector[a:b] for a, b in self._between(self._columns)]
        width = len(pieces[self.place])
        found = vector.new_empty(self.size * width)
        self._exchange(pieces, found, [width] * self.size)
        return found.view(self.size, width).sum(0)

    def _between(self, places: list[int]) -> list[tuple[int, int]]:
        return list(itertools.pairwise(places))

    def _exchange(self, pieces: list[Tensor], found: Tensor, counts: list[int]) -> None:
        sizes = [piece.numel() for piece in pieces]
        self._count(sum(s for p, s in enumerate(sizes) if p != self.place), found)
        dist.all_to_all_single(found, torch.cat(pieces), counts, sizes)

    def _count(self, numbers: int, like: Tensor) -> None:
        self.sent += numbers * like.element_size()

    def sum(self, part: Tensor) -> Tensor:
        """The sum over all processes of a small tensor; the same bits in each."""
        return self.each(part.double().cpu().reshape(-1)).sum(0).view(part.shape)

    def each(self, part: Tensor) -> Tensor:
        """The same small tensor (k,) of every process: (size, k)."""
        own = part.double().contiguous()
        found = [torch.empty_like(own) for _ in range(self.size)]
        self._count(own.numel() * (self.size - 1), own)
        device = self._device
        if device.type != "cpu":
            found = [x.to(device) for x in found]
            own = own.to(device)
        dist.all_gather(found, own)
        return torch.stack(found).cpu()

    @property
    def _device(self) -> torch.device:
        """Where messages have to lie."""
        if dist.get_backend() == "nccl":
            return torch.device("cuda", torch.cuda.current_device())
        return torch.device("cpu")

    def join(self, columns: Tensor) -> Tensor:
        """The columns (..., k) of all processes side by side; k may differ between them."""
        widths = [int(w) for w in self.each(torch.tensor([columns.shape[-1]])).flatten()]
        return self._join(columns, widths)

    def join_output(self, output: Tensor) -> Tensor:
        """The whole of a vector (d,) of which the own columns are here."""
        return self._join(output, [b - a for a, b in self._between(self._columns)])

    def _join(self, columns: Tensor, widths: list[int]) -> Tensor:
        """As all messages have to be of one size, short ones are filled up."""
        flat = columns.reshape(-1, columns.shape[-1])
        own = flat.new_zeros(len(flat), max(widths))
        own[:, : flat.shape[1]] = flat
        found = [torch.empty_like(own) for _ in range(self.size)]
        self._count(own.numel() * (self.size - 1), own)
        dist.all_gather(found, own)
        parts = [part[:, :width] for part, width in zip(found, widths, strict=True)]
        return torch.cat(parts, dim=1).reshape(*columns.shape[:-1], sum(widths))

    def gather_rows(self, rows: Tensor) -> Tensor:
        """Everybody's vectors (h, d), for what cannot do with less."""
        most = max(b - a for a, b in self._between(self._rows))
        own = rows.new_zeros(most, rows.shape[1])
        own[: len(rows)] = rows
        found = [torch.empty_like(own) for _ in range(self.size)]
        self._count(own.numel() * (self.size - 1), own)
        dist.all_gather(found, own)
        cut = zip(found, self._between(self._rows), strict=True)
        return torch.cat([part[: b - a] for part, (a, b) in cut])

    def any(self, flag: bool) -> bool:
        """Whether some process says so."""
        return bool(self.sum(torch.tensor(float(flag))))


def divides(server: RobustAggregator, attack: Attack) -> bool:
    """Whether server and attack can work on some columns of all vectors at a time.

    A rule or mix of a user's own that looks at whole vectors, or an attack that does not say that
    it does not, gets them whole.
    """
    own_mix = server.mix is None or _ours(type(server.mix))
    foreign = [k for k in type(attack).__mro__ if not _ours(k) and k is not object]
    says_so = attack.by_columns and all("by_columns" in vars(kind) for kind in foreign)
    return isinstance(server.rule, GeometricRule | CoordinateRule) and own_mix and says_so


def _ours(kind: type) -> bool:
    return kind.__module__.split(".")[0] == "lit_byz"
