"""``search="published"`` against ByzFL 0.0.11, whose line search it is.

Three things are compared. The search, on ByzFL's own damages: without any tolerance. The damages,
at every factor that ByzFL looks at: unless a tie lets the two servers choose different neighbours
or scores. The vectors sent: unless such a tie decided ByzFL's way, or damages that only rounding
tells apart, as where ARC clips the attackers whatever their factor. ByzFL computes arrays in
float64 and tensors in float32; here damages are float64 either way, so rounding falls differently.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import byzfl
import numpy as np
import pytest
import torch

from lit_byz.attacks import ALIE, FOE, SearchedAttack
from lit_byz.attacks._search import Care, published_search
from lit_byz.benchmark._byzfl import PAIRS, our_server
from lit_byz.robust import CWTM, NNM, Geometry, Mix, RobustAggregator, StaticClip
from tests.robust import _reference as reference
from tests.robust._cases import by_name

Array = np.ndarray

# Ours, ByzFL's search, and the attack that it searches a factor for.
ATTACKS: dict[str, tuple[type[SearchedAttack], Any, Any]] = {
    "foe": (FOE, byzfl.Optimal_InnerProductManipulation, byzfl.InnerProductManipulation),
    "alie": (ALIE, byzfl.Optimal_ALittleIsEnough, byzfl.ALittleIsEnough),
}
RULES = ("average", "cwtm", "cwmed", "gm", "krum", "multi_krum")
SERVERS = list(product(RULES, ATTACKS, (False, True), (False, True)))
# Of a short and of the long form.
CASES = [20, pytest.param(100, marks=pytest.mark.slow)]
# How far damages and vectors may be apart, relatively, by rounding alone.
ROUNDING = {np.float64: 1e-12, np.float32: 1e-5}
every_dtype = pytest.mark.parametrize("dtype", list(ROUNDING))
many_cases = pytest.mark.parametrize("cases", CASES)


@dataclass(frozen=True)
class Case:
    rule: str
    attack: str
    arc: bool
    nnm: bool
    f: int
    honest: Array

    @classmethod
    @cache
    def draw(cls, number: int, dtype: type) -> "Case":
        """Workers of different lengths around a mean that is short or long."""
        draw = np.random.default_rng(number)
        h, d = int(draw.integers(4, 14)), int(draw.integers(2, 60))
        f = int(draw.integers(1, (h + 1) // 2))
        spread = draw.uniform(0.2, 2, (h, 1)) * draw.standard_normal((h, d))
        honest = spread + draw.uniform(0, 2) * draw.standard_normal(d)
        return cls(*SERVERS[number % len(SERVERS)], f, honest.astype(dtype))

    @property
    def tensor_or_array(self) -> Any:
        single = self.honest.dtype == np.float32
        return torch.from_numpy(self.honest) if single else self.honest

    def theirs(self) -> Any:
        clip, mix = [byzfl.ARC(f=self.f)] * self.arc, [byzfl.NNM(f=self.f)] * self.nnm
        rule = PAIRS[self.rule].theirs(byzfl, self.f)
        return ATTACKS[self.attack][1](rule, pre_agg_list=clip + mix, f=self.f)

    def received(self, factor: float) -> Array:
        """What the server gets if the attackers take ByzFL's factor, in float64."""
        sent = np.asarray(ATTACKS[self.attack][2](factor)(self.tensor_or_array))
        return reference.exact(np.concatenate([self.honest, [sent] * self.f]))

    def damage(self, factor: float) -> float:
        """Of ByzFL's factor, through our server."""
        server = our_server(self.rule, self.f, arc=self.arc, nnm=self.nnm)
        mean = self.honest.astype(np.float64).mean(0)
        return float(np.linalg.norm(server(self.received(factor)) - mean))

    def is_open(self, factor: float) -> bool:
        """Whether the definitions of mixing and rule leave a choice between different vectors."""
        x = self.received(factor)
        x = reference.arc(x, self.f) if self.arc else x
        if self.nnm:
            if any(_cuts_a_tie(x, row, len(x) - self.f) for row in reference.squared_distances(x)):
                return True
            x = reference.nnm(x, self.f)
        return not _all_the_same(np.stack(by_name[self.rule].answers(x, self.f)))


def _all_the_same(x: Array) -> bool:
    return bool(np.allclose(x, x[0], rtol=1e-6, atol=1e-9))


def _cuts_a_tie(x: Array, distances: Array, keep: int) -> bool:
    """Whether different vectors are equally far, and only some of them are kept."""
    last = np.sort(distances)[keep - 1]
    tied = np.abs(distances - last) <= 1e-6 * last
    return bool(np.sum(distances <= last * (1 + 1e-6)) > keep) and not _all_the_same(x[tied])


@dataclass(frozen=True)
class Look:
    factor: float
    damage: float
    is_open: bool


@dataclass(frozen=True)
class Searched:
    """What ByzFL sent for a case, and what it looked at on the way."""

    case: Case
    sent: Array
    looks: list[Look]

    def is_open(self) -> bool:
        return any(look.is_open for look in self.looks)

    def is_decided(self, rounding: float) -> bool:
        """Whether every damage differs from the best one before it by more than rounding."""
        best = self.looks[0].damage
        for look in self.looks[1:]:
            if abs(look.damage - best) <= 10 * rounding * best:
                return False
            best = max(best, look.damage)
        return True


@cache
def searched(dtype: type, cases: int) -> list[Searched]:
    found = []
    for number in range(cases):
        case = Case.draw(number, dtype)
        attack, looks = case.theirs(), []
        evaluate = attack._evaluate

        def noted(
            honest: Any,
            mean: Any,
            factor: float,
            looks: list[Look] = looks,
            case: Case = case,
            evaluate: Callable[..., float] = evaluate,
        ) -> float:
            damage = evaluate(honest, mean, factor)
            looks.append(Look(factor, damage, case.is_open(factor)))
            return damage

        attack._evaluate = noted
        found.append(Searched(case, np.asarray(attack(case.tensor_or_array)), looks))
    return found


@every_dtype
@many_cases
def test_the_search_is_theirs(dtype: type, cases: int) -> None:
    """Same factors, in the same order, and the same choice."""
    for theirs in searched(dtype, cases):
        x, simple = theirs.case.tensor_or_array, ATTACKS[theirs.case.attack][2]
        attack, seen = theirs.case.theirs(), []

        def damage(
            factors: torch.Tensor, care: Care, attack: Any = attack, x: Any = x, seen: Any = seen
        ) -> torch.Tensor:
            seen.append(float(factors))
            return torch.tensor([attack._evaluate(x, x.mean(0), seen[-1])], dtype=torch.float64)

        found = published_search(damage, 20, 0.0)
        assert seen == [look.factor for look in theirs.looks]
        assert np.array_equal(np.asarray(simple(found.factor)(x)), theirs.sent)


@every_dtype
@many_cases
def test_the_damages_are_theirs(dtype: type, cases: int) -> None:
    furthest, compared = 0.0, 0
    for theirs in searched(dtype, cases):
        scale = float(np.median(np.linalg.norm(theirs.case.honest, axis=1)))
        for look in theirs.looks:
            if not look.is_open:
                compared += 1
                apart = abs(theirs.case.damage(look.factor) - look.damage)
                furthest = max(furthest, apart / max(look.damage, scale))
    print(f"{compared} damages of {20 * cases} compared, at most {furthest:.2g} apart")
    assert furthest < ROUNDING[dtype]
    assert compared > 0.95 * 20 * cases


@every_dtype
@many_cases
def test_the_vectors_are_theirs(dtype: type, cases: int) -> None:
    """And where rounding decides which vector is sent, it does the same damage."""
    rounding = ROUNDING[dtype]
    counts: Counter[str] = Counter()
    furthest = 0.0
    for theirs in searched(dtype, cases):
        case = theirs.case
        ours = ATTACKS[case.attack][0](search="published")
        server = our_server(case.rule, case.f, arc=case.arc, nnm=case.nnm)
        move, restore = ours.move(case.tensor_or_array, case.f, server)
        apart = float(np.linalg.norm(np.asarray(restore(move.vector())) - theirs.sent))
        same = apart <= rounding * float(np.linalg.norm(theirs.sent))
        counts["same"] += same
        if not theirs.is_open():
            counts["same damage"] += 1
            assert move.damage == pytest.approx(max(x.damage for x in theirs.looks), rel=rounding)
            if theirs.is_decided(rounding):
                counts["decided"] += 1
                assert same, case
        if same and theirs.sent.any():
            furthest = max(furthest, apart / float(np.linalg.norm(theirs.sent)))
    print(f"{dict(counts)} of {cases}, the same vectors at most {furthest:.2g} apart")
    # Most cases must have something to say.
    assert counts["same"] >= 0.75 * cases
    assert counts["same damage"] >= 0.75 * cases
    assert counts["decided"] >= 0.35 * cases


class NNMThenClip(Mix):
    """The order in ByzFL's own examples."""

    def apply(self, geometry: Geometry, step: int = 0) -> Geometry:
        return StaticClip(2.0).apply(NNM(1).apply(geometry, step))[0]


ROWS = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]


@pytest.mark.parametrize(
    "x",
    [
        np.array(ROWS),
        torch.tensor(ROWS),
        [np.array(row) for row in ROWS],
        [torch.tensor(row) for row in ROWS],
    ],
    ids=["array", "tensor", "arrays", "tensors"],
)
@pytest.mark.parametrize(
    ("attack", "documented"),
    [
        ("foe", [-2.74877907, -3.43597384, -4.1231686]),
        ("alie", [12.91985116, 13.91985116, 14.91985116]),
    ],
)
def test_their_documented_examples(attack: str, documented: list[float], x: Any) -> None:
    """The inputs of ByzFL's unit tests, which are those of its documentation."""
    ours, search, _ = ATTACKS[attack]
    theirs = search(byzfl.TrMean(f=1), pre_agg_list=[byzfl.NNM(f=1), byzfl.Clipping()], f=1)
    sent = ours(search="published")(x, 1, RobustAggregator(CWTM(1), mix=NNMThenClip()))
    np.testing.assert_allclose(sent, documented, rtol=1e-6)
    np.testing.assert_allclose(sent, theirs(x), rtol=1e-6)
    assert type(sent) is type(theirs(x))
