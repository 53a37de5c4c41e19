"""The server: clip, mix, rule."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from lit_byz._checks import owner_name
from lit_byz.robust._base import Clip, Mix, Rule, on_finite_rows
from lit_byz.robust._basis import Basis
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._inputs import as_rows
from lit_byz.robust._no_clip import NoClip


@dataclass(frozen=True)
class Explanation:
    """What a server did with its input, in the input's row order.

    ``weights`` are the shares of the input rows in the output, after clipping and mixing, where
    the rule has them; ``selected`` are the rows (after mixing) that a selecting rule took.
    ``non_finite`` are the rows for which zeros were taken: their squared norm is not finite.
    """

    output: Any
    threshold: torch.Tensor
    clipped: torch.Tensor
    norms: torch.Tensor
    weights: torch.Tensor | None
    selected: torch.Tensor | None
    non_finite: torch.Tensor


@dataclass(frozen=True)
class Prepared:
    """The rule's input: vectors after clipping and mixing, and what clipping did."""

    geometry: Geometry
    clipped_geometry: Geometry
    threshold: torch.Tensor


@dataclass(frozen=True, init=False)
class RobustAggregator:
    """The server's whole step: ``rule(mix(clip(x)))``; no clip and no mix are None.

    With ``bound_output`` the output is clipped at the longest of the vectors that went into the
    mix (F† in the paper's appendix), which Lemma 5.1 assumes of every rule.

    >>> from lit_byz.robust import ARC, CWTM, NNM
    >>> server = RobustAggregator(CWTM(f=1), clip=ARC(f=1), mix=NNM(f=1))
    >>> server(torch.tensor([[1.0, 0.0], [1.0, 0.2], [0.8, 0.0], [1.0, 0.1], [-50.0, 0.0]]))
    tensor([0.9500, 0.0750])
    """

    rule: Rule
    clip: Clip
    mix: Mix | None
    bound_output: bool

    def __init__(
        self,
        rule: Rule,
        clip: Clip | None = None,
        mix: Mix | None = None,
        bound_output: bool = False,
    ) -> None:
        parts = (("rule", rule, Rule), ("clip", clip, Clip), ("mix", mix, Mix))
        for name, value, kind in parts:
            if not isinstance(value, kind) and (value is not None or name == "rule"):
                none = "" if name == "rule" else ", or None for none"
                raise TypeError(
                    f"RobustAggregator: {name} must be a {kind.__name__}{none}, got {value!r}"
                )
        clip = NoClip() if clip is None else clip
        made = {"rule": rule, "clip": clip, "mix": mix, "bound_output": bound_output}
        for name, given in made.items():
            object.__setattr__(self, name, given)

    def check(self, n: int) -> None:
        """Raise ValueError where this server cannot work on n vectors."""
        self.clip.check(n)
        if self.mix is not None:
            self.mix.check(n)
            n = self.mix.rows_after(n)
        self.rule.check(n)

    def __call__(self, x: Any, step: int = 0) -> Any:
        """The output (..., d) for vectors x (..., n, d), of the same kind as ``x``."""
        rows, restore, _ = as_rows(self, x)
        self.check(rows.shape[-2])
        basis = Basis(rows)
        return restore(on_finite_rows(self, basis, lambda b: self.outputs(Geometry(b), step))[0])

    def explain(self, x: Any, step: int = 0) -> Explanation:
        """The output and how it came about; ``step`` matters to mixes that draw at random."""
        rows, restore, _ = as_rows(self, x)
        self.check(rows.shape[-2])

        def work(basis: Basis) -> Explanation:
            geometry = Geometry(basis)
            prepared = self.prepare(geometry, step)
            choice = self.rule.choice(prepared.geometry)
            shares = choice.weights
            if shares is not None:
                shares = (shares.unsqueeze(-2) @ prepared.geometry.matrix).squeeze(-2)
            return Explanation(
                output=restore(self.finish(prepared)),
                threshold=prepared.threshold,
                clipped=geometry.norms > prepared.threshold.unsqueeze(-1),
                norms=geometry.norms,
                weights=shares,
                selected=choice.selected,
                non_finite=basis.rows.new_zeros(()),
            )

        explanation, used = on_finite_rows(self, Basis(rows), work)
        return replace(explanation, non_finite=used.non_finite)

    def prepare(self, geometry: Geometry, step: int = 0) -> Prepared:
        """Clip and mix."""
        if self.rule.uses_distances or (self.mix is not None and self.mix.uses_distances):
            # The norms that clipping asks for are then a part of what is needed anyway.
            _ = geometry.basis.gram
        clipped, threshold = self.clip.apply(geometry)
        mixed = clipped if self.mix is None else self.mix.apply(clipped, step)
        return Prepared(mixed, clipped, threshold)

    def outputs(self, geometry: Geometry, step: int = 0) -> torch.Tensor:
        """The outputs (..., d) for vectors given by a geometry."""
        return self.finish(self.prepare(geometry, step))

    def damages(
        self,
        geometry: Geometry,
        centre: torch.Tensor,
        step: int = 0,
        columns: Basis | None = None,
    ) -> torch.Tensor:
        """‖output − centre @ basis‖ (...) for every batch item of a geometry.

        With ``columns``, columns of the basis that speak for all of them, only these go through
        the rule, while clipping and mixing see the whole geometry.
        """
        prepared = self._seen_through(columns, self.prepare(geometry, step))
        if not self.bound_output:
            return self.rule.damages(prepared.geometry, centre)
        basis = prepared.geometry.basis
        return _lengths(basis, self.finish(prepared) - basis.combine(centre)).cpu()

    def alignments(
        self,
        geometry: Geometry,
        direction: torch.Tensor,
        step: int = 0,
        columns: Basis | None = None,
    ) -> torch.Tensor:
        """⟨output, direction @ basis⟩ (...) for every batch item; ``columns`` as for damages."""
        prepared = self._seen_through(columns, self.prepare(geometry, step))
        if not self.bound_output:
            return self.rule.alignments(prepared.geometry, direction)
        basis = prepared.geometry.basis
        target = basis.combine(direction)
        return basis.total((self.finish(prepared).double() @ target.double()).cpu())

    @staticmethod
    def _seen_through(columns: Basis | None, prepared: Prepared) -> Prepared:
        if columns is None:
            return prepared
        return replace(prepared, geometry=Geometry(columns, prepared.geometry.matrix))

    def output_and_damage(
        self, prepared: Prepared, centre: torch.Tensor
    ) -> tuple[torch.Tensor, float]:
        """The output (d,) for what :meth:`prepare` returned, and its distance from the centre."""
        if not self.bound_output:
            return self.rule.output_and_damage(prepared.geometry, centre)
        output, basis = self.finish(prepared), prepared.geometry.basis
        return output, float(basis.norm(output - basis.combine(centre)))

    def finish(self, prepared: Prepared) -> torch.Tensor:
        """The rule's output for what :meth:`prepare` returned."""
        output = self.rule.outputs(prepared.geometry)
        if not self.bound_output:
            return output
        limit = prepared.clipped_geometry.norms.amax(-1).to(output.device)
        length = _lengths(prepared.geometry.basis, output)
        scale = torch.where(length > limit, limit / length, 1.0)
        return output * scale.unsqueeze(-1).to(output.dtype)


def as_server(owner: object, server: Any) -> RobustAggregator:
    """``server`` itself, or a rule alone as one without clipping and mixing."""
    if isinstance(server, RobustAggregator):
        return server
    if isinstance(server, Rule):
        return RobustAggregator(server)
    raise TypeError(
        f"{owner_name(owner)}: server must be a RobustAggregator, or a rule alone, "
        f"got a {type(server).__name__}"
    )


def _lengths(basis: Basis, vectors: torch.Tensor) -> torch.Tensor:
    """Euclidean norms (...) of vectors (..., d) that are divided as the basis is."""
    wide = vectors.double()
    if basis.shard is None:
        return wide.norm(dim=-1)
    return basis.total(wide.square().sum(-1)).sqrt()
