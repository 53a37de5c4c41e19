"""What people write first: every guess works, or ends in one line that says how it would."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lit_byz.attacks import FOE, Attack, Move, SearchedAttack
from lit_byz.cli.train import main
from lit_byz.config.advice import slow_rules
from lit_byz.config.components import CALLBACKS, GROUPS, component, registry
from lit_byz.config.compose import compose_plain
from lit_byz.data import Dataset
from lit_byz.errors import BadRequest
from lit_byz.robust import Average, CoordinateRule, GeometricRule, Rule

GUESSES = """
    import torch
    from lit_byz.attacks import Attack, SearchedAttack
    from lit_byz.data import Dataset, DownloadedDataset, Partition
    from lit_byz.robust import Clip, CoordinateRule, GeometricRule, Mix, Rule

    class NoBase: ...
    def function(x): return x.mean(0)
    class Renamed(Rule):
        def forward(self, x): return x.mean(0)
    class Called(Rule):
        def __call__(self, x): return x.mean(0)
    class Geometric(GeometricRule): ...
    class Coordinate(CoordinateRule): ...
    class Outputs(Rule):
        def outputs(self, geometry): return geometry.rows().mean(-2)
    class Mean(Rule):
        def aggregate(self, x): return x.mean(0)
    class Idle(Attack):
        def attack(self, honest): return -honest.mean(0)
    class Pointless(SearchedAttack): ...
    class Endless(Clip): ...
    class Still(Mix): ...
    class Blank(Dataset):
        classes, shape = 2, (3,)
    class Lost(DownloadedDataset): ...
    class Sealed(DownloadedDataset):
        def find(self, folder, file): return b""
    class Heap(Partition): ...
    class Silent(Rule): aggregate = lambda self, x: None
    class Loose(GeometricRule): weights = lambda self, geometry: 1.0
    class Paired(CoordinateRule): reduction = lambda self, n: (0, n)
    class Planless(Attack): plan = lambda self, scene, state: None
    class Lineless(SearchedAttack): line = lambda self, scene: scene.mean
    class Unread(Blank): read = lambda self, root: None
    class Raises(Rule):
        def aggregate(self, x): (e := ValueError("no")).add_note("somebody's own note"); raise e
    class Forgetful(torch.nn.Module):
        def __init__(self, shape, classes): self.layer = torch.nn.Linear(9, classes)
"""


@pytest.fixture
def guesses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "first_guesses.py").write_text(textwrap.dedent(GUESSES))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setenv("LIT_BYZ_IMPORT", "first_guesses")
    yield "first_guesses"
    sys.modules.pop("first_guesses", None)


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_has_an_example_that_works(group: str) -> None:
    known = registry(group)
    assert len(known.example.splitlines()) == 3
    made: dict[str, type] = {}
    exec(known.example, made)
    (own,) = [kind for name, kind in made.items() if name.startswith("My")]
    known._check_written(own, group)
    instance = own((2, 3), 4) if group == "model" else own()
    x = torch.eye(3)
    if group in ("rule", "clip", "mix"):
        assert instance(x).shape == {"rule": (3,)}.get(group, (3, 3))
    if group == "attack":
        assert instance(x, f=1).tolist() == (-x.mean(0)).tolist()
    if group == "partition":
        assert [len(part) for part in instance(np.arange(7), 2, 1)] == [4, 3]
    if group == "model":
        assert instance(torch.zeros(5, 2, 3)).shape == (5, 4)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", ["NoBase", "function"])
def test_without_the_base_class(guesses: str, group: str, name: str) -> None:
    with pytest.raises(BadRequest) as caught:
        component(group, f"{guesses}.{name}")
    assert "derive" in str(caught.value)
    assert str(registry(group).base) in str(caught.value)
    assert caught.value.__notes__ == [registry(group).example]


def test_callbacks_have_no_example_and_need_none(guesses: str) -> None:
    with pytest.raises(BadRequest, match=r"must derive from lightning.pytorch.callbacks.Callback"):
        CALLBACKS[f"{guesses}.NoBase"]


@pytest.mark.parametrize(
    ("group", "name", "said"),
    [
        ("rule", "Renamed", "aggregate(self, x), which Rule leaves to it; it has forward"),
        ("rule", "Called", "aggregate(self, x), which Rule leaves to it"),
        ("rule", "Geometric", "weights(self, geometry), which GeometricRule leaves to it"),
        ("rule", "Coordinate", "reduction(self, n), which CoordinateRule leaves to it"),
        ("attack", "Idle", "plan(self, scene, state), which Attack leaves to it; it has attack"),
        ("attack", "Pointless", "line(self, scene), which SearchedAttack leaves to it"),
        ("clip", "Endless", "threshold(self, norms), which Clip leaves to it"),
        ("mix", "Still", "matrix(self, geometry, step), which Mix leaves to it"),
        ("dataset", "Blank", "read(self, root), which Dataset leaves to it"),
        ("dataset", "Lost", "find(self, folder, file), which DownloadedDataset leaves to it"),
        ("dataset", "Sealed", "decode(self, contents), which DownloadedDataset leaves to it"),
        ("partition", "Heap", "deal(self, labels, workers, rng), which Partition leaves to it"),
    ],
)
def test_without_the_method(guesses: str, group: str, name: str, said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        component(group, f"{guesses}.{name}")
    assert f"must write the method {said}" in str(caught.value)
    (example,) = caught.value.__notes__
    assert f"({said.split(', which ')[1].split(maxsplit=1)[0]}):" in example.splitlines()[1]


@pytest.mark.parametrize(
    ("setting", "name", "code", "base"),
    [
        ("rule", "Silent", 1, Rule),
        ("rule", "Loose", 1, GeometricRule),
        ("rule", "Paired", 1, CoordinateRule),
        ("attack", "Planless", 1, Attack),
        ("attack", "Lineless", 1, SearchedAttack),
        ("dataset", "Unread", 2, Dataset),
        ("rule", "Raises", 1, None),
    ],
)
def test_what_is_returned_wrongly_is_shown_by_an_example(
    guesses: str,
    setting: str,
    name: str,
    code: int,
    base: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = [] if setting == "dataset" else ["dataset=digits"]
    few = ["model=logreg", "train.steps=1", "tracking.enabled=false", "--quiet"]
    assert main([f"{setting}={guesses}.{name}", *data, *few]) == code
    error, _, example = capsys.readouterr().err.partition("for example:\n")
    assert error.splitlines()[-1].startswith("error: ")
    assert textwrap.dedent(example).rstrip("\n") == (base.example if base else "")
    assert "somebody's own note" not in error


def test_another_method_may_be_written_instead(guesses: str) -> None:
    outputs = component("rule", f"{guesses}.Outputs")()
    assert outputs(torch.eye(3)).tolist() == torch.eye(3).mean(0).tolist()


def test_a_model_without_super(guesses: str) -> None:
    with pytest.raises(BadRequest, match=r"begin Forgetful.__init__ with super\(\).__init__\(\)"):
        compose_plain([f"model={guesses}.Forgetful", "dataset=digits"])


def test_the_command_shows_the_line_and_then_the_example(
    guesses: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"rule={guesses}.NoBase", "dataset=digits"]) == 2
    line, *example = capsys.readouterr().err.splitlines()
    assert line == "error: rule 'first_guesses.NoBase': must derive from lit_byz.robust.Rule"
    assert example == [
        "for example:",
        "    from lit_byz.robust import Rule",
        "    class MyRule(Rule):",
        "        def aggregate(self, x): return x.mean(0)",
    ]


class Returns(Rule):
    def __init__(self, made: object) -> None:
        self.made = made

    def aggregate(self, x: torch.Tensor) -> torch.Tensor:
        return self.made(x)  # type: ignore[operator, no-any-return]


@pytest.mark.parametrize(
    "made", [lambda x: x.numpy().mean(0), lambda x: x.double().mean(0), lambda x: x.mean(0).half()]
)
def test_a_rule_may_return_other_kinds_of_numbers(made: object) -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    found = Returns(made)(x)
    assert found.dtype == x.dtype
    assert found.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda x: x.mean(), r"of shape \(2,\) for x of shape \(3, 2\), got shape \(\)"),
        (lambda x: x.mean(1), r"got shape \(3,\)"),
        (lambda x: x.mean(0).int(), r"of torch.float32, got torch.int32"),
        (lambda x: None, r"got None: is a return missing\?"),
        (lambda x: x.mean(0).tolist(), r"got a list"),
        (lambda x: np.array(["a", "b"]), r"got a NumPy array of <U1"),
    ],
)
def test_a_rule_that_returns_something_else(made: object, said: str) -> None:
    must = "Returns.aggregate: must return one vector, a tensor "
    with pytest.raises((TypeError, ValueError), match=f"{must}.*{said}"):
        Returns(made)(torch.ones(3, 2))


def test_a_rule_that_writes_to_its_input_changes_nothing() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    assert Returns(lambda x: x.zero_().sum(0))(x).tolist() == [0.0, 0.0]
    assert x.tolist() == [[1.0, 2.0], [3.0, 6.0]]


class Sends(Attack):
    def __init__(self, made: object) -> None:
        self.made = made

    def plan(self, scene, state):  # type: ignore[no-untyped-def]
        return self.made(scene)  # type: ignore[operator]


@pytest.mark.parametrize(
    "made",
    [
        lambda scene: -scene.honest.rows.mean(0),
        lambda scene: -scene.honest.rows.double().mean(0),
        lambda scene: -scene.honest.rows.numpy().mean(0),
        lambda scene: Move(scene.honest, -scene.mean.float()),
    ],
)
def test_an_attack_may_send_a_vector_or_a_move(made: object) -> None:
    honest = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    assert Sends(made)(honest, f=1).tolist() == [-2.0, -4.0]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda scene: None, r"Sends.plan: must return a Move, .* got None: is a return missing"),
        (lambda scene: [1.0, 2.0], r"Sends.plan: must return a Move, .* got a list"),
        (lambda scene: scene.honest.rows, r"Sends.plan: .* got torch.float32 of shape \(3, 2\)"),
        (lambda scene: torch.ones(2).int(), r"Sends.plan: .* got torch.int32 of shape \(2,\)"),
        (
            lambda scene: Move(scene.honest, scene.mean[:-1]),
            r"Sends.plan: its Move's coefficients must be .* of shape \(3,\), .* of \(2,\)",
        ),
        (
            lambda scene: Move.of_row(scene, torch.ones(5)),
            r"Move.of_row: row must be one vector of shape \(2,\), got \(5,\)",
        ),
    ],
)
def test_an_attack_that_sends_something_else(made: object, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        Sends(made)(torch.ones(3, 2), f=1)


def test_slow_rules_are_named_once_with_the_way_out(guesses: str) -> None:
    own = [f"rule={guesses}.Mean", "dataset=digits", "model=logreg"]
    slow = [
        compose_plain([*own, f"attack={attack}", f"seed={s}"])
        for attack in ("foe", "alie", "sf")
        for s in (1, 2)
    ]
    (line,) = slow_rules(slow)
    assert line.startswith(f"slow: {guesses}.Mean forms all n vectors anew")
    assert "that foe and alie tries" in line
    assert "GeometricRule" in line
    assert "CoordinateRule" in line
    assert "attack.search=coarse" in line
    (again,) = slow_rules([compose_plain([*own, "attack=foe@coarse"])])
    assert "attack.search" not in again
    for quick in (["attack=sf"], ["attack=foe", "attack.tau=2"], ["workers.f=0"]):
        assert slow_rules([compose_plain([*own, *quick])]) == []
    assert slow_rules([compose_plain([f"rule={r}", "attack=foe"]) for r in ("gm", "cwtm")]) == []


def test_the_fast_path_of_a_geometric_rule_is_the_same_rule() -> None:
    class Mean(GeometricRule):
        def weights(self, geometry):  # type: ignore[no-untyped-def]
            return torch.full((*geometry.batch, geometry.n), 1 / geometry.n, dtype=torch.float64)

    x = torch.randn(5, 7, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(Mean()(x), Returns(lambda x: x.mean(0))(x))
    assert torch.allclose(FOE()(x, f=1), FOE()(x, f=1, server=None))
    assert torch.allclose(Average()(x), Mean()(x))
