"""Compiled code of every set of instructions that this processor has gives the same numbers."""

import ctypes
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lit_byz import _instructions, _machine, _native
from lit_byz.attacks import ALIE, FOE, Scene
from lit_byz.attacks._sample import sample_columns
from lit_byz.cli.command import guarded
from lit_byz.errors import BadRequest
from lit_byz.robust import ARC, CWTM, NNM, Basis, CWMed, MeaMed, RobustAggregator
from lit_byz.robust._columns import TOO_MANY, Reduction, probe_columns, reduce_columns
from lit_byz.robust.vectors import Beside, coordinate_spread
from tests._each import each

AVAILABLE = _instructions.available()
LACKING = sorted(set(_instructions.KNOWN) - set(AVAILABLE))


# The widest, and the others.
SETS = [AVAILABLE[0], *(pytest.param(name, marks=pytest.mark.slow) for name in AVAILABLE[1:])]


@pytest.fixture(params=SETS)
def isa(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def at_the_end_of_memory(rows: torch.Tensor) -> torch.Tensor:
    """A copy after which comes a page that may not be read."""
    page, wanted = mmap.PAGESIZE, rows.numel() * rows.element_size()
    size = -(-wanted // page) * page
    memory = mmap.mmap(-1, size + page)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    unreadable = ctypes.c_void_p(begin + size), ctypes.c_size_t(page), 0
    assert ctypes.CDLL(None).mprotect(*unreadable) == 0
    place = (ctypes.c_char * wanted).from_buffer(memory, size - wanted)
    return torch.frombuffer(place, dtype=rows.dtype).view(rows.shape).copy_(rows)


def passes(rows: torch.Tensor) -> dict[str, torch.Tensor]:
    """What every pass over the rows finds."""
    m, d = rows.shape
    basis = Basis(rows)
    c = draw(3, m + 2, m, seed=1, dtype=torch.float64)
    centre = torch.full((m,), 1 / m, dtype=torch.float64)
    trimmed = reduce_columns(rows, c, m + 2, Reduction(1, m + 1), centre, keep=True)
    nearest = reduce_columns(rows, c, m + 2, MeaMed(1).reduction(m + 2))
    mean, deviation = coordinate_spread(rows)
    found = {
        "trimmed": trimmed.output,
        "damages": trimmed.damages,
        "nearest": nearest.output,
        "gram": basis.gram,
        "squares": Basis(rows).squared_norms,
        "combined": basis.combine(centre),
        "mean": mean,
        "deviation": deviation,
        "sample": sample_columns(basis, basis, max(1, d // 3)).rows,
    }
    return {name: value for name, value in found.items() if value is not None}


@pytest.mark.compiler
@each("m, d", [(3, 1), (10, 127), (7, 1000), (2, 4097), (31, 300)])
@each("dtype", [torch.float32, torch.float64])
def test_every_pass(isa: str, m: int, d: int, dtype: torch.dtype) -> None:
    rows = draw(m, d, dtype=dtype)
    with _native.plain_torch():
        expected = passes(rows)
    with _native.made_of(isa):
        assert _native.instructions() == isa
        found = passes(at_the_end_of_memory(rows))
    tolerance = {"rtol": 2e-5, "atol": 2e-5} if dtype is torch.float32 else {}
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, **tolerance, msg=lambda s, n=name: n + s)


def mixed(n: int, copies: int, m: int, seed: int) -> torch.Tensor:
    """Coefficients (n, m + 1) as clipping and mixing make them, the first rows alike."""
    kept = torch.rand(n, m + 1, generator=torch.Generator().manual_seed(seed)) < 0.8
    scale = torch.rand(m + 1, generator=torch.Generator().manual_seed(seed + 1)) + 0.5
    c = (kept * scale / m).double()
    c[:copies] = c[:1]
    return c


@pytest.mark.compiler
@each("n, copies", [(2, 1), (3, 3), (11, 1), (11, 4), (39, 9), (40, 1), (41, 1), (60, 5)])
@each("d", [1, 300])
def test_many_probes(isa: str, n: int, copies: int, d: int) -> None:
    m = max(1, n - copies)
    rows, centre = draw(m, d), torch.full((m,), 1 / m, dtype=torch.float64)
    rows[0] *= 1e4  # must not be shared with rows that leave it out
    c = torch.stack([mixed(n, k, m, seed=k) for k in range(1, copies + 1)])
    beside = Beside(Basis(rows), centre)
    for reduction in (Reduction((n - 1) // 2, n // 2 + 1), Reduction(0, n), Reduction(n // 4, n)):
        with _native.plain_torch():
            expected = reduce_columns(rows, beside.over_rows(c), n, reduction, centre, keep=True)
        with _native.made_of(isa):
            there = at_the_end_of_memory(rows)
            found = probe_columns(there, c, n, reduction, centre, beside.lengths, keep=True)
        too_many = n - copies > 40 or n > 40 + 1
        assert (found is None) == too_many, TOO_MANY
        if found is not None:
            assert found.finite
            for a, b in ((found.output, expected.output), (found.damages, expected.damages)):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-3)


@pytest.mark.compiler
def test_probes_notice_what_is_not_finite(isa: str) -> None:
    rows, centre = draw(4, 200), torch.full((4,), 0.25, dtype=torch.float64)
    c, lengths = mixed(5, 2, 4, seed=0).unsqueeze(0), torch.ones(5)
    for bad in (torch.inf, torch.nan):
        rows[2, 199] = bad
        with _native.made_of(isa):
            found = probe_columns(rows, c, 5, Reduction(1, 4), centre, lengths)
        assert found is not None
        assert not found.finite


@pytest.mark.parametrize("attack", [FOE(), ALIE()])
def test_searches_find_the_same(isa: str, attack: FOE | ALIE) -> None:
    honest = draw(9, 20_000) * torch.logspace(-3, 0, 20_000) + 0.2
    for rule in (CWTM(2), CWMed()):
        scene = Scene(Basis(honest), 2, RobustAggregator(rule, clip=ARC(2), mix=NNM(2)))
        with _native.plain_torch():
            expected = attack.act(scene, {})
        with _native.made_of(isa):
            found = attack.act(scene, {})
        assert found.damage == pytest.approx(expected.damage, rel=1e-5)


def test_the_widest_is_taken_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIT_BYZ_ISA", raising=False)
    assert _instructions.chosen() == AVAILABLE[0]
    assert AVAILABLE[-1] == "plain"
    for name in AVAILABLE:
        monkeypatch.setenv("LIT_BYZ_ISA", name)
        assert _instructions.chosen() == name


@pytest.mark.parametrize("wrong", ["sse", *LACKING[:1]])
def test_a_wrong_name_is_one_line(
    wrong: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LIT_BYZ_ISA", wrong)
    with pytest.raises(BadRequest, match=f"LIT_BYZ_ISA={wrong}: .*; choose one of .*plain$"):
        _instructions.chosen()
    assert guarded(lambda _: 0, []) == 2
    assert capsys.readouterr().err.startswith(f"error: LIT_BYZ_ISA={wrong}: ")


def test_runs_say_what_they_were_computed_with(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {}
    for name in AVAILABLE:
        monkeypatch.setenv("LIT_BYZ_ISA", name)
        _machine.machine.cache_clear()
        told[name] = _machine.machine()
    monkeypatch.undo()
    _machine.machine.cache_clear()
    assert len(set(told.values())) == len(AVAILABLE)


@pytest.mark.slow
@pytest.mark.timeout(900)  # many tests, and perhaps a compilation before them
@pytest.mark.parametrize("name", AVAILABLE[1:])
def test_the_kernels_own_tests(name: str) -> None:
    """Those that the default run has seen pass with the widest instructions."""
    here = Path(__file__).parent
    files = ["test_native.py", "robust/test_contract.py", "robust/test_reference.py"]
    files += ["training/test_convolution.py", "test_numerics.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *(str(here / f) for f in files)]
    environment = {**os.environ, "LIT_BYZ_ISA": name}
    done = subprocess.run(
        command, cwd=here.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
