"""The searches reach what a dense grid of 400 factors reaches, under every server.

An attack that searches badly makes every defence look good. The default run covers every rule,
clip and mix on made-up vectors of one size; the tests marked ``slow`` cover more sizes, and those
marked ``data`` every size, and momentums of a network on MNIST as well.
"""

import statistics

import pytest
import torch

from lit_byz.attacks import ALIE, FOE, Scene, SearchedAttack
from lit_byz.attacks._sample import sample_columns, thin
from lit_byz.robust import ARC, NNM, Average, Basis, NoClip, RobustAggregator
from tests._each import each
from tests.attacks._audit import (
    ATTACKS,
    CLIPS,
    ENOUGH,
    RULES,
    SEARCHES,
    SIZES,
    WEAKER,
    Case,
    audit,
    cases,
    dense_damages,
    honest_vectors,
)
from tests.attacks._momentums import mnist_momentums

D = 1000
# Few columns of a large model, evenly spaced: every layer is there.
STRIDE = 211
WITHOUT_DATA = [
    (11, 1, "random"),
    (11, 5, "heterogeneous"),
    (15, 3, "heterogeneous"),
    (17, 2, "random"),
]
QUICK = (11, 5, "heterogeneous")
KINDS = ("random", "heterogeneous", "mnist")


def vectors(kind: str, h: int) -> torch.Tensor:
    if kind == "mnist":
        return mnist_momentums(h)[:, ::STRIDE].contiguous()
    return honest_vectors(kind, h, D)


def assert_searched_well(chosen: list[Case], kind: str) -> None:
    """``pytest -rP`` shows what the weaker searches reach."""
    short, shares = [], []
    for case in chosen:
        result = audit(case, vectors(kind, case.n - case.f), (*SEARCHES, *WEAKER))
        shares.append(result.share)
        if not result.passes() or result.outdone():
            short.append(f"{case}: {result}")
    for search in WEAKER:
        found = [share[search] for share in shares]
        middle = statistics.median(found)
        print(f"{search}: {min(found):.2f} to {max(found):.2f} (median {middle:.2f}) of dense")
    assert not short, "\n".join(short)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("n", "f", "kind"),
    [
        pytest.param(*given, marks=() if given == QUICK else pytest.mark.slow)
        for given in WITHOUT_DATA
    ],
)
def test_every_server(n: int, f: int, kind: str, rule: str) -> None:
    assert_searched_well(list(cases(((n, f),), (rule,))), kind)


@pytest.mark.parametrize(
    ("rule", "clip"),
    [
        pytest.param(rule, clip, marks=() if clip == "arc" else pytest.mark.slow)
        for rule in ("cwtm", "multi_krum")
        for clip in CLIPS
    ],
)
def test_many_workers(rule: str, clip: str) -> None:
    chosen = [Case(39, 9, rule, clip, "nnm", attack) for attack in ATTACKS]
    assert_searched_well(chosen, "heterogeneous")


@pytest.mark.parametrize("rule", ["caf", "mda", "monna", "smea"])
@pytest.mark.parametrize(
    ("clip", "mix"),
    [
        ("arc", "nnm"),
        pytest.param("none", "nnm", marks=pytest.mark.slow),
        pytest.param("arc", "none", marks=pytest.mark.slow),
    ],
)
def test_the_other_rules(rule: str, clip: str, mix: str) -> None:
    assert_searched_well([Case(11, 2, rule, clip, mix, "foe")], "heterogeneous")


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("n", "f", "kind"),
    [(*size, kind) for kind in KINDS for size in SIZES if (*size, kind) not in WITHOUT_DATA],
)
def test_all_the_others(n: int, f: int, kind: str, rule: str) -> None:
    assert_searched_well(list(cases(((n, f),), (rule,))), kind)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(
    ("f", "rule", "clip", "mix"),
    [
        (1, "cwtm", "arc", "nnm"),
        (1, "meamed", "none", "none"),
        (5, "cwmed", "arc", "nnm"),
        (5, "cwtm", "static", "nnm"),
    ],
)
def test_a_sample_of_the_columns_is_enough(
    f: int, rule: str, clip: str, mix: str, attack: str
) -> None:
    """All 431,080 columns, of which the search looks at a few thousand but for the last step."""
    case = Case(11, f, rule, clip, mix, attack)
    result = audit(case, mnist_momentums(11 - f))
    assert min(result.share.values()) >= 0.99
    assert not any(result.at_edge.values())


@each("attack", [FOE, ALIE])
@each("search", SEARCHES)
@each("mix", [None, NNM(1)])
def test_no_defence_has_no_best_factor(
    attack: type[SearchedAttack], search: str, mix: NNM | None
) -> None:
    """The average moves as far as one likes: the best factor is the largest, and that is said."""
    server = RobustAggregator(Average(), mix=mix)
    x = honest_vectors("random", 10, 50)
    for high in (100.0, attack().effort["high"]):
        low = max(attack().effort["low"], -high)
        move, _ = attack(search=search, low=low, high=high).move(x, 1, server)
        assert move.factor is not None
        assert abs(move.factor) == high
        assert move.at_edge
    clipped = RobustAggregator(Average(), clip=ARC(1), mix=mix)
    assert not attack(search=search).move(x, 1, clipped)[0].at_edge


@each("attack", [FOE, ALIE])
def test_no_defence_and_a_weaker_search(attack: type[SearchedAttack]) -> None:
    """The largest factor that was looked at is the best, and that is said too."""
    server = RobustAggregator(Average())
    x = honest_vectors("random", 10, 50)
    coarse, _ = attack(search="coarse").move(x, 1, server)
    assert coarse.factor is not None
    assert abs(coarse.factor) == attack(search="coarse").effort["high"]
    assert coarse.at_edge
    published, _ = attack(search="published").move(x, 1, server)
    assert published.factor == attack(search="published").effort["start"] + 10 * (2**19 - 1)
    assert published.at_edge


def test_alie_looks_at_both_signs() -> None:
    """Below the mean there can be more to gain than above: a tenth, on these vectors."""
    case = Case(11, 5, "cwtm", "static", "none", "alie")
    x = vectors("heterogeneous", 6)
    scene = Scene(Basis(x), 5, case.server(x))
    below, above = (ALIE(low=low).act(scene, {}) for low in (None, 0.0))
    assert below.factor is not None
    assert above.damage is not None
    assert below.damage is not None
    assert below.factor < 0
    assert below.damage > 1.09 * above.damage


@each("attack", ATTACKS)
@each("kind", ["random", "heterogeneous"])
@pytest.mark.parametrize("rule", ["cwtm", "cwmed", "meamed"])
def test_sampled_columns_speak_for_all(rule: str, kind: str, attack: str, either_path: str) -> None:
    """Damages through the sample are the damages, within two percent, at every factor."""
    case = Case(11, 2, rule, "arc", "nnm", attack)
    x = honest_vectors(kind, 9, 40_000)
    server = case.server(x)
    scene = Scene(Basis(x), case.f, server)
    searched = ATTACKS[attack]()
    basis, start, direction = searched.line(scene)
    centre = torch.zeros(basis.size, dtype=torch.float64)
    centre[: scene.h] = 1 / scene.h
    factors = torch.tensor([0.0, 0.3, 1.0, 2.0, 5.0, 40.0], dtype=torch.float64)
    received = scene.facing(basis, start + factors.unsqueeze(1) * direction)
    exact = server.damages(received, centre)
    prepared = server.prepare(received).geometry
    sample = sample_columns(basis, scene.honest, 8192)
    for some, tolerance in ((sample, 0.02), (thin(sample, 4), 0.04)):
        geometry = type(prepared)(some, prepared.matrix)
        torch.testing.assert_close(
            server.rule.damages(geometry, centre), exact, rtol=tolerance, atol=0
        )


@each("search", [*SEARCHES, *WEAKER])
def test_what_is_reported_is_what_happens(search: str) -> None:
    """Through a sample or not, the damage of a move is that of the vectors it sends."""
    for d in (100, 20_000):
        x = honest_vectors("heterogeneous", 10, d)
        for clip in (NoClip(), ARC(1)):
            server = Case(11, 1, "cwtm", "none", "nnm", "alie").server(x)
            server = RobustAggregator(server.rule, clip=clip, mix=server.mix)
            move, restore = ALIE(search=search).move(x, 1, server)
            output = server(torch.cat([x, restore(move.vector()).unsqueeze(0)]))
            damage = float((output.double() - x.double().mean(0)).norm())
            assert move.damage == pytest.approx(damage, rel=1e-4)


def test_a_bounded_output_is_searched_too() -> None:
    x = honest_vectors("heterogeneous", 9, 60)
    plain = Case(11, 2, "cwmed", "none", "nnm", "foe").server(x)
    server = RobustAggregator(plain.rule, mix=plain.mix, bound_output=True)
    scene = Scene(Basis(x), 2, server)
    best = float(dense_damages(scene, FOE())[1].max())
    for search in SEARCHES:
        damage = FOE(search=search).act(scene, {}).damage
        assert damage is not None
        assert damage >= ENOUGH * best
