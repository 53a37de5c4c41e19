"""Points given by affine weights over known points, and distances to them."""

import torch

from lit_byz.robust._geometry import Geometry


def squared_distances_to(weights: torch.Tensor, geometry: Geometry) -> torch.Tensor:
    """‖Σ_i w_i p_i − p_j‖² (..., N) for weights (..., N) >= 0 that sum to 1.

    The points are the geometry's vectors and, last, the origin. From distances nothing cancels when
    the points lie far from the origin and near each other; from inner products nothing does when
    one of them, of little weight, is far from all others. The smaller bound on the error decides.
    """
    distances, inner = geometry.squared_distances, geometry.inner_products
    image = (weights.unsqueeze(-2) @ distances).squeeze(-2)
    spread = (image * weights).sum(-1, keepdim=True) / 2
    shadow = (weights.unsqueeze(-2) @ inner).squeeze(-2)
    squares = inner.diagonal(dim1=-2, dim2=-1).clamp(min=0)
    direct = (shadow * weights).sum(-1, keepdim=True) - 2 * shadow + squares
    lengths = squares.sqrt()
    reach = ((lengths * weights).sum(-1, keepdim=True) + lengths).square()
    return torch.where(image + spread <= reach, image - spread, direct).clamp(min=0)


def origin(geometry: Geometry) -> torch.Tensor:
    """The weights of the last point, the origin."""
    distances = geometry.squared_distances
    weights = torch.zeros(distances.shape[:-1], dtype=distances.dtype)
    weights[..., -1] = 1
    return weights
