"""What is proved about robust aggregation, as numbers, and two ways to look at data through it.

The source is "Adaptive Gradient Clipping for Robust Federated Learning". Its symbols, here and in
the submodules: n workers, f of them Byzantine; κ, the robustness coefficient of a rule; (G, B), the
dissimilarity of the honest gradients; L, the smoothness of the losses; Δ_o, a bound on the initial
loss above its minimum; ζ, a bound on the honest gradients at the initial model.

>>> from lit_byz.robust import theory
>>> round(theory.kappa_arc(theory.kappa_nnm(n=11, f=1), n=11, f=1), 3)
2.01
>>> theory.breakdown_point(B=2.0)
0.16666666666666666
"""

from lit_byz.robust.theory._bounds import breakdown_point, kappa_arc, kappa_lower, kappa_nnm
from lit_byz.robust.theory._certificate import damage_bound, server_kappa
from lit_byz.robust.theory._convergence import (
    ImprovementInterval,
    epsilon_o,
    error_bound,
    error_bound_arc,
    improvement_factor,
    improvement_interval,
    learning_rate,
    psi,
    required_steps,
    rho,
)
from lit_byz.robust.theory._dissimilarity import (
    Dissimilarity,
    dissimilarity_pairs,
    estimate_dissimilarity,
    fit_dissimilarity,
)
from lit_byz.robust.theory._search import WorstInput, search_kappa, worst_ratio

__all__ = [
    "Dissimilarity",
    "ImprovementInterval",
    "WorstInput",
    "breakdown_point",
    "damage_bound",
    "dissimilarity_pairs",
    "epsilon_o",
    "error_bound",
    "error_bound_arc",
    "estimate_dissimilarity",
    "fit_dissimilarity",
    "improvement_factor",
    "improvement_interval",
    "kappa_arc",
    "kappa_lower",
    "kappa_nnm",
    "learning_rate",
    "psi",
    "required_steps",
    "rho",
    "search_kappa",
    "server_kappa",
    "worst_ratio",
]
