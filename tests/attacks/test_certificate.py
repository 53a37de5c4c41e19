"""No attack does more damage than the theory allows, and where it allows nothing it says so."""

from dataclasses import replace

import pytest
import torch

from lit_byz.attacks import ATTACKS, Span
from lit_byz.robust import (
    ARC,
    CWTM,
    NNM,
    Average,
    Basis,
    Bucketing,
    CWMed,
    GeometricMedian,
    Geometry,
    Krum,
    MeaMed,
    MultiKrum,
    NoClip,
    RobustAggregator,
    Rule,
    StaticClip,
    theory,
)

EXACT_GM = GeometricMedian(nu=1e-9, iterations=2000, tolerance=1e-10)
SERVER = RobustAggregator(CWTM(2), clip=ARC(2), mix=NNM(2))


def rules(f: int) -> list[Rule]:
    return [CWTM(f), CWMed(), EXACT_GM, MultiKrum(f)]


def honest_vectors(kind: str, seed: int, h: int, d: int) -> torch.Tensor:
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(h, d, generator=source, dtype=torch.float64)
    if kind == "far":  # close to each other, far from the origin
        return 0.01 * x + torch.randn(d, generator=source, dtype=torch.float64)
    if kind == "heterogeneous":
        scales = torch.rand(h, 1, generator=source, dtype=torch.float64)
        return x * 3 * scales * torch.logspace(-2, 0, d, dtype=torch.float64)
    return x


def strongest(server: RobustAggregator, honest: torch.Tensor, f: int) -> float:
    """The greatest damage of all attacks, by the vectors that they send."""
    attacks = [ATTACKS[name]() for name in ATTACKS if name not in ("lf", "span")]
    attacks += [Span(budget=800), Span(distinct=True, budget=1600)]
    found = []
    for attack in attacks:
        sent = attack(honest, f, server).nan_to_num(nan=0, posinf=0, neginf=0)
        output = server(torch.cat([honest, sent.expand(f, -1)]))
        found.append(float((output - honest.mean(0)).norm()))
    return max(found)


# Their places in what ``rules`` returns; the geometric median's search takes longest.
RULES = [
    pytest.param(0, id="cwtm"),
    pytest.param(1, id="cwmed"),
    pytest.param(2, id="gm", marks=pytest.mark.slow),
    pytest.param(3, id="multi_krum"),
]


@pytest.mark.parametrize(
    "kind", [pytest.param("random", marks=pytest.mark.slow), "heterogeneous", "far"]
)
@pytest.mark.parametrize("index", RULES)
@pytest.mark.parametrize("zeta", [None, pytest.param(1.0, marks=pytest.mark.slow), 2.0])
def test_no_attack_goes_beyond_the_bound(kind: str, index: int, zeta: float | None) -> None:
    for seed, (h, f, d) in enumerate([(3, 1, 2), (10, 1, 30), (7, 3, 12)]):
        honest = honest_vectors(kind, seed, h, d)
        clip = NoClip() if zeta is None else ARC(f, zeta)
        server = RobustAggregator(rules(f)[index], clip=clip, mix=NNM(f))
        bound = theory.damage_bound(server, honest, f)
        assert bound is not None
        found = strongest(server, honest, f)
        assert found <= bound * (1 + 1e-9), (h, f, d)
        bounded = replace(server, bound_output=True)
        assert theory.damage_bound(bounded, honest, f) == bound


@pytest.mark.parametrize("index", RULES)
@pytest.mark.parametrize("arc", [False, True])
def test_more_declared_than_there_are(index: int, arc: bool) -> None:
    for real, declared in ((1, 2), (1, 4), (2, 3)):
        honest = honest_vectors("heterogeneous", real, 9, 20)
        clip = ARC(declared) if arc else NoClip()
        server = RobustAggregator(rules(declared)[index], clip=clip, mix=NNM(declared))
        bound = theory.damage_bound(server, honest, real)
        assert bound is not None
        assert strongest(server, honest, real) <= bound


def test_the_formula() -> None:
    honest = honest_vectors("random", 1, 9, 5)
    spread = float((honest - honest.mean(0)).square().sum(1).mean())
    kappa = 8 * 2 / 9 * (1 + (1 + 2 / 7) ** 2)
    plain = theory.damage_bound(replace(SERVER, clip=NoClip()), honest, 2)
    assert plain == pytest.approx((kappa * spread) ** 0.5)
    clipped = theory.damage_bound(SERVER, honest, 2)
    assert clipped == pytest.approx(((kappa + 4 / 7) * spread) ** 0.5)
    assert theory.damage_bound(SERVER, honest.numpy(), 2) == clipped
    assert theory.damage_bound(SERVER, Geometry(Basis(honest)), 2) == clipped
    assert theory.server_kappa(SERVER, 11, 2) == pytest.approx(kappa + 4 / 7)


def test_workers_that_agree_cannot_be_harmed() -> None:
    assert theory.damage_bound(SERVER, torch.ones(9, 4), 2) == 0


@pytest.mark.parametrize(
    "server",
    [
        replace(SERVER, mix=None),
        replace(SERVER, mix=Bucketing(2)),
        replace(SERVER, clip=StaticClip(1.0)),
        replace(SERVER, rule=Average()),
        replace(SERVER, rule=MeaMed(2)),
        replace(SERVER, rule=Krum(2)),
        replace(SERVER, rule=CWTM(1)),
        replace(SERVER, clip=ARC(1)),
        replace(SERVER, mix=NNM(3)),
        RobustAggregator(CWTM(1), clip=ARC(1), mix=NNM(1)),
        replace(SERVER, rule=GeometricMedian()),
        replace(SERVER, rule=GeometricMedian(nu=1e-9, iterations=20)),
        replace(SERVER, rule=GeometricMedian(nu=0.1, iterations=1000)),
    ],
    ids=str,
)
def test_where_no_theorem_applies(server: RobustAggregator) -> None:
    assert theory.damage_bound(server, honest_vectors("random", 1, 9, 5), 2) is None


def test_more_attackers_than_a_minority_have_no_bound() -> None:
    assert theory.damage_bound(SERVER, torch.randn(5, 3), 6) is None
