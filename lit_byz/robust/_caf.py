"""Covariance-bound agnostic filter: a spectral rule."""

from dataclasses import dataclass

import torch

from lit_byz._checks import keep_integer
from lit_byz.robust._base import GeometricRule
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._registries import RULES


@RULES.register("caf")
@dataclass(frozen=True)
class CAF(GeometricRule):
    """Covariance-bound agnostic filter: weighs down what lies along the direction of most variance.

    While the weights c (all 1 at first) sum to more than n − 2f: take the top eigenvector v of the
    weighted covariance, and multiply c_i by 1 − τ_i/max τ with τ_i = ⟨x_i − μ_c, v⟩². The output is
    the weighted mean μ_c that had the smallest top eigenvalue. Allouah, Guerraoui and Stephan,
    *Towards Trustworthy Federated Learning with Untrusted Participants*, ICML 2025. The eigenvector
    is exact here, found among combinations of the x_i.
    """

    f: int

    def __post_init__(self) -> None:
        keep_integer(self, "f", 0)

    def weights(self, geometry: Geometry) -> torch.Tensor:
        n = geometry.n
        distances = geometry.squared_distances[..., :-1, :-1]
        flat = [self._filter(matrix) for matrix in distances.reshape(-1, n, n)]
        return torch.stack(flat).reshape(distances.shape[:-1])

    def _filter(self, distances: torch.Tensor) -> torch.Tensor:
        n = len(distances)
        c = torch.ones(n, dtype=torch.float64)
        best, smallest = c / n, torch.inf
        while c.sum() > n - 2 * self.f:
            p = c / c.sum()
            # Inner products ⟨x_i − μ, x_j − μ⟩ from distances alone (double centring).
            image = distances @ p
            centred = (image + image.unsqueeze(1) - distances - p @ image) / 2
            root = p.sqrt()
            values, vectors = torch.linalg.eigh(root * centred * root.unsqueeze(1))
            top = float(values[-1])
            if top < smallest:
                best, smallest = p, top
            along = (centred @ (root * vectors[:, -1])).square()
            if top <= 0 or float(along.max()) == 0:
                break
            # A vector whose weight is gone already must not set the scale of the others.
            along = torch.where(c > 0, along, 0.0)
            c = c * (1 - along / along.max())
            # What is left by rounding alone is gone: copies of one vector go together.
            c = torch.where(c > 1e-9, c, 0.0)
        return best
