"""A device that is not this processor, without having one: what a GPU would be asked for.

Tensors on it hold their numbers in a CPU tensor, and say that they lie on ``meta``. An operation
works on tensors of one device only, as on a GPU; a copy to the CPU, and a question whose answer
Python waits for, is counted.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

FAR = torch.device("meta")
NEAR = torch.device("cpu")
aten = torch.ops.aten
ASK = (aten._local_scalar_dense.default, aten.equal.default)
# What takes tensors of two devices on a GPU as well.
EITHER = (aten.index.Tensor, aten.copy_.default, aten._to_copy.default)


class Far(torch.Tensor):
    """A tensor on the far device."""

    near: torch.Tensor

    @staticmethod
    def __new__(cls, near: torch.Tensor) -> "Far":
        made: Far = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            near.size(),
            strides=near.stride(),
            storage_offset=near.storage_offset(),
            dtype=near.dtype,
            device=FAR,
        )
        made.near = near
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"Far({self.near})"

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return Visit.current.run(func, args, kwargs or {})


class Visit(TorchDispatchMode):
    """Counts what a step asks of the far device, and refuses what a GPU would refuse."""

    current: "Visit"

    def __init__(self, large: int) -> None:
        super().__init__()
        self.large = large
        self.asked: Counter[str] = Counter()
        self.made_near: list[tuple[str, tuple[int, ...]]] = []
        Visit.current = self

    @property
    def waits(self) -> int:
        """How often the processor waits for the far device."""
        return sum(self.asked.values())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return self.run(func, args, kwargs or {})

    def run(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        leaves, _ = tree_flatten((args, kwargs))
        far = [leaf for leaf in leaves if isinstance(leaf, Far)]
        near = [x for x in leaves if isinstance(x, torch.Tensor) and not isinstance(x, Far)]
        device = kwargs.get("device")
        if far and any(x.dim() > 0 for x in near) and func not in EITHER:
            raise RuntimeError(f"{func}: tensors on two devices")
        if func in ASK and far:
            self.asked[f"{func} {_caller()}"] += 1
        if func is aten._to_copy.default and far and device == NEAR:
            self.asked[f"copy {_caller()}"] += 1
        stays = device == FAR or (bool(far) and device is None)
        if func is aten.copy_.default:
            stays = isinstance(args[0], Far)
            if far and not stays:
                self.asked[f"copy {_caller()}"] += 1
        near_args, near_kwargs = (tree_map(_near, part) for part in (args, kwargs))
        result = func(*near_args, **near_kwargs)
        if func is aten.detach_.default or (args and result is _near(args[0])):
            return args[0]
        if not stays:
            self._note_made(func, result, near)
            return result
        return tree_map(lambda x: Far(x) if type(x) is torch.Tensor else x, result)

    def _note_made(self, func: Any, result: Any, near: Sequence[torch.Tensor]) -> None:
        """A tensor as long as a vector that a step makes on the CPU, out of nothing."""
        if near or not isinstance(result, torch.Tensor):
            return
        if max(result.shape, default=0) >= self.large:
            self.made_near.append((f"{func} {_caller()}", tuple(result.shape)))


def _near(value: Any) -> Any:
    if isinstance(value, Far):
        return value.near
    return NEAR if value == FAR and isinstance(value, torch.device) else value


def _caller() -> str:
    """The line of the package that asks."""
    import traceback

    ours = [f for f in traceback.extract_stack() if "/lit_byz/" in f.filename]
    return f"{ours[-1].filename.rpartition('/lit_byz/')[2]}:{ours[-1].lineno}" if ours else "?"


def far_model(make: Callable[[], nn.Module]) -> nn.Module:
    """A model whose parameters and buffers lie on the far device."""
    model = make()
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = nn.Parameter(Far(parameter.detach()))
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = Far(buffer)
    return model


@contextmanager
def visiting(large: int) -> Iterator[Visit]:
    """Watch what is done inside."""
    with Visit(large) as visit:
        yield visit
