"""Points given by affine weights over known points, and distances to them."""

import torch


def squared_distances_to(weights: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
    """‖Σ_i w_i p_i − p_j‖² (..., N) for weights (..., N) that sum to 1.

    Only the squared distances (..., N, N) between the points are used, so nothing cancels when the
    points lie far from the origin and near each other.
    """
    image = (weights.unsqueeze(-2) @ distances).squeeze(-2)
    spread = (image * weights).sum(-1, keepdim=True)
    return (image - spread / 2).clamp(min=0)


def origin(distances: torch.Tensor) -> torch.Tensor:
    """The weights of the last point, which a geometry's distances keep for the origin."""
    weights = torch.zeros(distances.shape[:-1], dtype=distances.dtype)
    weights[..., -1] = 1
    return weights
