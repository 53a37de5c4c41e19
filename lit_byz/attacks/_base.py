"""What attacks share. A new one is a subclass in a file of its own."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch

from lit_byz._checks import check_integer
from lit_byz.attacks._returned import floats, kind_of
from lit_byz.errors import BadRequest
from lit_byz.registry import Registry, shown_how
from lit_byz.robust import CLIPS, RULES, Average, Basis, Geometry, RobustAggregator, Rule
from lit_byz.robust.vectors import (
    Beside,
    as_rows,
    as_server,
    as_tensor,
    from_numpy,
    on_finite_rows,
)

ATTACKS = Registry(
    "attack",
    "lit_byz.attacks.Attack",
    "from lit_byz.attacks import Attack\n"
    "class MyAttack(Attack):\n"
    "    def plan(self, scene, state): return -scene.honest.rows.mean(0)",
)

# What an attack remembers from step to step. It starts empty and holds tensors only, so that a
# checkpoint can carry it.
State = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Scene:
    """What the attackers see before they send: the honest vectors, the server, the step.

    ``buffer``, if given, is a tensor (h + 1, d) whose first h rows are the honest vectors; its
    last row is the attackers' to write to, which saves copying the others beside a new one.
    ``flipped`` is the honest workers' mean gradient on flipped labels, for those who ask for it.
    """

    honest: Basis
    f: int
    server: RobustAggregator
    step: int = 0
    flipped: torch.Tensor | None = None
    buffer: torch.Tensor | None = None

    @property
    def h(self) -> int:
        return self.honest.size

    @property
    def n(self) -> int:
        return self.h + self.f

    @cached_property
    def mean(self) -> torch.Tensor:
        """The coefficients (h,) of the honest mean over the honest vectors."""
        return torch.full((self.h,), 1.0 / self.h, dtype=torch.float64)

    def with_row(self, row: torch.Tensor) -> Basis:
        """A basis of the honest vectors and one more."""
        if self.buffer is None or self.honest.rows.data_ptr() != self.buffer.data_ptr():
            return self.honest.like(torch.cat([self.honest.rows, row.unsqueeze(0)]))
        if row.data_ptr() != self.buffer[self.h].data_ptr():
            self.buffer[self.h].copy_(row)
        return self.honest.like(self.buffer)

    def facing(self, basis: Basis, sent: torch.Tensor) -> Geometry:
        """What the server receives if every Byzantine worker sends ``sent`` (..., m)."""
        return self.facing_each(
            basis, sent.unsqueeze(-2).expand(*sent.shape[:-1], self.f, sent.shape[-1])
        )

    def facing_each(self, basis: Basis, sent: torch.Tensor) -> Geometry:
        """What the server receives if the Byzantine workers send the f rows of ``sent``."""
        own = torch.eye(self.h, basis.size, dtype=torch.float64).expand(*sent.shape[:-2], -1, -1)
        return Geometry(basis, torch.cat([own, sent], dim=-2))


@dataclass(frozen=True)
class Move:
    """What every Byzantine worker sends: ``coefficients`` (m,) over the rows of ``basis``.

    Attackers who do not all send the same have a row of coefficients each, (f, m). A searched
    attack also says which factor it chose, the damage ‖R − m̄‖ that it expects, and whether the
    best factor was at the edge of what it searched.
    """

    basis: Basis
    coefficients: torch.Tensor
    factor: float | None = None
    damage: float | None = None
    at_edge: bool = False

    @classmethod
    def of_row(cls, scene: Scene, row: torch.Tensor | np.ndarray) -> "Move":
        """Send ``row`` (d,) as it is."""
        must = f"row must be one vector of shape {tuple(scene.honest.rows.shape[-1:])}"
        if not isinstance(row, torch.Tensor):
            row = from_numpy(row)
            if not isinstance(row, torch.Tensor):
                raise TypeError(f"Move.of_row: {must}, got {kind_of(row)}")
            row = row.to(scene.honest.rows)
        if row.shape != scene.honest.rows.shape[-1:]:
            raise ValueError(f"Move.of_row: {must}, got {tuple(row.shape)}")
        coefficients = torch.zeros(scene.h + 1, dtype=torch.float64)
        coefficients[-1] = 1
        return cls(scene.with_row(row), coefficients)

    def received(self, scene: Scene, basis: Basis) -> Geometry:
        """What the server receives; ``basis`` is the move's own, or that with zeros in it.

        Beside a centre, what is sent is made of that where it then takes less.
        """
        sent = self.coefficients
        if isinstance(basis, Beside):
            sent = basis.express(sent)
        return (scene.facing if sent.dim() == 1 else scene.facing_each)(basis, sent)

    def vector(self) -> torch.Tensor:
        """What is sent, (d,), or (f, d) if not all send the same: infinities and NaNs included."""
        return self.basis.like(self.basis.rows, trusted=True).combine(self.coefficients)


class Attack:
    """f Byzantine workers who see all honest vectors; most attacks send one vector f times.

    A subclass writes :meth:`plan`. One that treats columns alike, and asks its basis for what
    concerns whole vectors, may say so with ``by_columns``, and in ``column_state`` which entries of
    its state have a number for every column: a run on several devices then divides its vectors.

    >>> from lit_byz.attacks import Attack, Move
    >>> class Halve(Attack):
    ...     def plan(self, scene, state):
    ...         return Move(scene.honest, scene.mean / 2)
    >>> Halve()(torch.tensor([[1.0, 2.0], [3.0, 6.0]]), f=1)
    tensor([1., 2.])
    """

    to_write: ClassVar[tuple[str, ...]] = ("plan", "act")
    example: ClassVar[str] = ATTACKS.example
    by_columns: ClassVar[bool] = False
    column_state: ClassVar[frozenset[str]] = frozenset()

    @property
    def needs_flipped(self) -> bool:
        """Whether the honest workers' gradients on flipped labels must be computed for it."""
        return False

    def check(self, h: int) -> None:
        """Raise ValueError where the attack cannot be made among h honest workers."""

    def plan(self, scene: Scene, state: State) -> Move | torch.Tensor:
        """What to send now, a move or a vector (d,).

        ``scene.honest.rows`` are the honest vectors (h, d); ``state`` starts empty, and is this
        attack's to change.
        """
        raise TypeError(f"{type(self).__name__} does not say what it sends")

    def act(self, scene: Scene, state: State) -> Move:
        """:meth:`plan`, with zeros in place of honest vectors that are not finite."""
        self.check(scene.h)

        def work(honest: Basis) -> Move:
            seen = replace(scene, honest=honest)
            planned = self.plan(seen, state)
            with shown_how(type(self)):
                return as_move(self, planned, seen)

        return on_finite_rows(self, scene.honest, work)[0]

    def move(
        self,
        honest: Any,
        f: int,
        server: RobustAggregator | Rule | None = None,
        *,
        state: State | None = None,
        step: int = 0,
        flipped: Any = None,
    ) -> tuple[Move, Callable[[torch.Tensor], Any]]:
        """The attack on given honest vectors (h, d), and how to give back its vector."""
        rows, restore, _ = as_rows(self, honest, "honest")
        if rows.dim() != 2:
            raise ValueError(
                f"{type(self).__name__}: honest must have shape (h, d), got {tuple(rows.shape)}"
            )
        f = check_integer(self, "f", f, 1)
        if self.needs_flipped:
            if flipped is None:
                raise ValueError(
                    f"{type(self).__name__}: flipped must be given: the honest workers' gradients "
                    "on flipped labels, (h, d), or their mean (d,)"
                )
            flipped = _mean_of(self, flipped, rows)
        server = as_server(self, Average() if server is None else server)
        server.check(rows.shape[0] + f)
        basis, _ = on_finite_rows(self, Basis(rows), _looked_at)
        scene = Scene(basis, f, server, step, flipped)
        return self.act(scene, {} if state is None else state), restore

    def __call__(
        self,
        honest: Any,
        f: int,
        server: RobustAggregator | Rule | None = None,
        *,
        state: State | None = None,
        step: int = 0,
        flipped: Any = None,
    ) -> Any:
        """What each of the f Byzantine workers sends, (d,), given the honest vectors (h, d).

        Attackers who do not all send the same send the rows of (f, d).
        ``server`` is what searched attacks work against; a rule alone is one without clipping and
        mixing. An attack with a memory keeps it in ``state``, a dict that starts empty; pass the
        same one at every step.
        """
        move, restore = self.move(honest, f, server, state=state, step=step, flipped=flipped)
        return restore(move.vector())


def as_move(attack: Attack, found: Any, scene: Scene) -> Move:
    """What ``attack.plan`` returned as a move; anything that is none is an error that says so."""
    what = f"{type(attack).__name__}.plan"
    rows = scene.honest.rows
    must = f"must return a Move, or the vector that is sent, of shape ({rows.shape[-1]},)"
    found = from_numpy(found)
    if isinstance(found, torch.Tensor):
        if found.shape != rows.shape[-1:] or not found.dtype.is_floating_point:
            raise ValueError(f"{what}: {must}, got {found.dtype} of shape {tuple(found.shape)}")
        return Move.of_row(scene, found.detach().to(rows))
    if not isinstance(found, Move):
        raise TypeError(f"{what}: {must}, got {kind_of(found)}")
    basis: Any = found.basis
    if not isinstance(basis, Basis):
        must = "its Move's basis must be one such as scene.honest"
        raise TypeError(f"{what}: {must}, got {kind_of(basis)}")
    m = basis.size
    must = f"floating-point of shape ({m},), one for each row of its basis, or ({scene.f}, {m})"
    shapes = ((m,), (scene.f, m))
    given = floats(f"{what}: its Move's coefficients must be {must}", found.coefficients, shapes)
    return found if given is found.coefficients else replace(found, coefficients=given)


def _looked_at(basis: Basis) -> Basis:
    """The basis itself, once its norms have shown that it is finite."""
    _ = basis.squared_norms
    return basis


def _mean_of(owner: Attack, flipped: Any, rows: torch.Tensor) -> torch.Tensor:
    h, d = rows.shape
    flipped = as_tensor(owner, flipped, "flipped").to(rows)
    if tuple(flipped.shape) not in ((h, d), (d,)):
        raise ValueError(
            f"{type(owner).__name__}: flipped must have shape {(h, d)} or {(d,)}, "
            f"got {tuple(flipped.shape)}"
        )
    return flipped.mean(0) if flipped.dim() == 2 else flipped


def assumed_server(scene: Scene, rule: str | None, clip: str | None) -> RobustAggregator:
    """The server as attackers see it who take its rule or clipping for another one."""
    server = scene.server
    if rule is not None:
        server = replace(server, rule=_build_assumed(RULES, rule, scene))
    if clip is not None:
        server = replace(server, clip=_build_assumed(CLIPS, clip, scene))
    server.check(scene.n)
    return server


def _build_assumed(registry: Registry, name: str, scene: Scene) -> Any:
    component = registry[name]
    server = scene.server
    declared = (getattr(part, "f", None) for part in (server.rule, server.clip, server.mix))
    f = next((value for value in declared if value is not None), scene.f)
    fields = getattr(component, "__dataclass_fields__", {})
    try:
        return component(f=f) if "f" in fields else component()
    except TypeError as error:
        raise BadRequest(f"cannot assume {registry.kind} '{name}' from f alone: {error}") from error
