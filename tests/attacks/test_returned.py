"""What users' attacks return: NumPy will do, and the rest is named in one line."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from lit_byz.attacks import Attack, Move, Scene, SearchedAttack, State
from lit_byz.robust import CWTM
from tests._each import each

HONEST = torch.tensor([[1.0, 0.0], [1.0, 0.5], [0.5, 0.0], [1.0, 1.0]])


class Own(Attack):
    """Returns whatever it is told."""

    def __init__(self, answer: Callable[[Scene], Any]) -> None:
        self.answer = answer

    def plan(self, scene: Scene, state: State) -> Any:
        return self.answer(scene)


@dataclass(frozen=True)
class Along(SearchedAttack):
    """Searches along whatever it is told."""

    answer: Callable[[Scene], Any] = lambda scene: None

    def line(self, scene: Scene) -> Any:
        return self.answer(scene)


@each("dtype", [np.float64, np.float32])
def test_coefficients_of_numpy(dtype: type) -> None:
    own = Own(lambda scene: Move(scene.honest, np.full(scene.h, -0.25, dtype)))  # type: ignore[arg-type]
    assert torch.allclose(own(HONEST, 1), -HONEST.mean(0))
    each_own = Own(lambda scene: Move(scene.honest, np.eye(scene.f, scene.h, dtype=dtype)))  # type: ignore[arg-type]
    assert torch.equal(each_own(HONEST, 2, CWTM(1)), HONEST[:2])


def test_a_row_of_numpy() -> None:
    own = Own(lambda scene: Move.of_row(scene, np.array([1.0, 2.0])))
    sent = own(HONEST, 1)
    assert sent.tolist() == [1.0, 2.0]
    assert sent.dtype is HONEST.dtype


@each("search", ["grid", "line", "published", "coarse"])
def test_a_line_of_numpy(search: str) -> None:
    def tensors(scene: Scene) -> Any:
        return scene.honest, scene.mean, -scene.mean

    def arrays(scene: Scene) -> Any:
        return [scene.honest, scene.mean.numpy(), -scene.mean.numpy()]

    for tau in (None, 2.0):
        own, known = (Along(tau, search, answer=answer) for answer in (arrays, tensors))
        assert torch.equal(own(HONEST, 1, CWTM(1)), known(HONEST, 1, CWTM(1)))


MOVE = "Own.plan: its Move's"
LINE = "Along.line: must return a basis, start and direction"
SHAPE = f"{LINE}, both floating-point of shape (4,), one for each row of the basis"
WRONG: list[tuple[Attack, str, str]] = [
    (Own(lambda s: Move(s.honest, [0.0] * s.h)), f"{MOVE} coefficients", "a list"),  # type: ignore[arg-type]
    (Own(lambda s: Move(s.honest, np.zeros(3))), f"{MOVE} coefficients", "torch.float64 of (3,)"),  # type: ignore[arg-type]
    (Own(lambda s: Move(s.honest, None)), f"{MOVE} coefficients", "None: is a return missing?"),  # type: ignore[arg-type]
    (Own(lambda s: Move(s.honest.rows, s.mean)), f"{MOVE} basis", "a Tensor"),  # type: ignore[arg-type]
    (Own(lambda s: Move.of_row(s, [1.0, 2.0])), "Move.of_row: row must be", "a list"),  # type: ignore[arg-type]
    (Own(lambda s: Move.of_row(s, np.ones(3))), "Move.of_row: row must be", "(3,)"),
    (Along(), LINE, "None: is a return missing?"),
    (Along(answer=lambda s: s.mean), LINE, "a Tensor"),
    (Along(answer=lambda s: (s.mean, s.mean)), LINE, "2 values"),
    (Along(answer=lambda s: (s.honest.rows, s.mean, s.mean)), LINE, "a Tensor"),
    (Along(answer=lambda s: (s.honest, s.mean, 1.0)), SHAPE, "a float"),
    (Along(answer=lambda s: (s.honest, s.mean, np.ones(5))), SHAPE, "torch.float64 of (5,)"),
    (Along(answer=lambda s: (s.honest, np.ones(4, int), s.mean)), SHAPE, "torch.int64 of (4,)"),
]


@each("attack, begins, got", WRONG)
def test_what_is_no_answer(attack: Attack, begins: str, got: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        attack(HONEST, 1)
    message = str(caught.value)
    assert message.startswith(begins)
    assert message.endswith(f", got {got}")
    assert "\n" not in message
