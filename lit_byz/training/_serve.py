"""The second half of a step: the attackers answer, and the server makes one vector of all."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from lit_byz.attacks import Attack, Move, Scene, State
from lit_byz.robust import Basis, Geometry, theory
from lit_byz.robust.vectors import Beside, on_finite_rows
from lit_byz.training.settings import Observation


@torch.no_grad()
def serve(
    scene: Scene, attack: Attack, state: State, loss: float
) -> tuple[Tensor, Observation, Move | None]:
    """The server's output R (d,), what the step looked like, and what the attackers sent.

    ``loss`` is the honest workers' mean, for the observation. Where no honest vector is finite,
    ``NothingFinite`` is raised.
    """
    honest, h, server = scene.honest, scene.h, scene.server
    sent = None if scene.f == 0 else attack.act(scene, state)

    def work(basis: Basis) -> tuple[Tensor, Observation]:
        centre = pad(scene.mean, (0, basis.size - h))
        if sent is None:
            geometry = Geometry(basis)
        else:
            # Much of what attackers send is made of the honest mean: one vector beside the others.
            beside = Beside(basis, centre)
            geometry, centre = sent.received(scene, beside), beside.last
        prepared = server.prepare(geometry, scene.step)
        output, damage = server.output_and_damage(prepared, centre)
        clipped = geometry.norms > prepared.threshold
        return output, Observation(
            step=scene.step,
            loss=loss,
            threshold=float(prepared.threshold),
            clipped_honest=int(clipped[:h].sum()),
            clipped_byzantine=int(clipped[h:].sum()),
            mean_norm=float(geometry.combination_norms(centre)),
            max_norm=float(geometry.norms[:h].max()),
            average_norm=float(geometry.norms[:h].mean()),
            output_norm=float(basis.norm(output)),
            damage=damage,
            bound=None if sent is None else _bound(scene, geometry),
            factor=None if sent is None else sent.factor,
            at_edge=sent is not None and sent.at_edge,
            non_finite=0,
        )

    basis = honest if sent is None else sent.basis
    (output, observed), used = on_finite_rows(server, basis, work)
    bad = used.non_finite
    if basis.rows.data_ptr() != honest.rows.data_ptr() and not honest.is_finite():
        # The attackers saw zeros for honest vectors that are not finite, and passed them on.
        bad = torch.cat([honest.sanitised().non_finite, bad[h:]])
    count = int(bad[:h].sum()) + scene.f * int(bad[h:].sum())
    return output, Observation(**{**vars(observed), "non_finite": count}), sent


def _bound(scene: Scene, received: Geometry) -> float | None:
    """The most damage that theory allows for these honest vectors."""
    honest = Geometry(received.basis, received.matrix[: scene.h])
    return theory.damage_bound(scene.server, honest, scene.f)
