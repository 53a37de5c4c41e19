"""How much damage can be done at most to given honest vectors, where a theorem says so."""

import math
from typing import Any

from lit_byz._checks import check_integer
from lit_byz.robust._aggregator import RobustAggregator, as_server
from lit_byz.robust._arc import ARC
from lit_byz.robust._base import Rule
from lit_byz.robust._basis import Basis
from lit_byz.robust._cwmed import CWMed
from lit_byz.robust._cwtm import CWTM
from lit_byz.robust._geometric_median import GeometricMedian
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._inputs import as_rows
from lit_byz.robust._krum import MultiKrum
from lit_byz.robust._nnm import NNM
from lit_byz.robust._no_clip import NoClip
from lit_byz.robust.theory._bounds import OWNER, kappa_arc, kappa_nnm

# Weiszfeld's iterations count as run to convergence, and their smoothing as none, if they may be so
# many and if ν is below this share of the honest vectors' spread.
CONVERGED = 100
NO_SMOOTHING = 1e-3


def server_kappa(server: RobustAggregator | Rule, n: int, f: int) -> float | None:
    """A κ of the whole server against f Byzantine workers of n; None where no theorem gives one.

    The theorems speak of CWTM, CWMed, GM and Multi-Krum behind NNM, without clipping or behind
    ARC, all told the same f. If that is more than the real f, its κ holds for the real one too: see
    :func:`damage_bound`. Clipping the output (``bound_output``) brings it no farther from any mean
    of the inputs. GM means the exact minimiser here, whatever its iterations.
    """
    server = as_server(OWNER, server)
    if not isinstance(server.mix, NNM) or not isinstance(server.clip, NoClip | ARC):
        return None
    if not isinstance(server.rule, CWTM | CWMed | GeometricMedian | MultiKrum):
        return None
    declared = server.mix.f
    parts = (server.rule, server.clip)
    if declared < f or any(getattr(part, "f", declared) != declared for part in parts):
        return None
    kappa = kappa_nnm(n, declared)
    if isinstance(server.clip, ARC):
        kappa = kappa_arc(kappa, n, declared, server.clip.zeta)
    return kappa


def damage_bound(server: RobustAggregator | Rule, honest: Any, f: int) -> float | None:
    """The most that ‖R − m̄‖ can be, whatever the f Byzantine workers send; None if not known.

    ``honest`` holds the honest vectors (h, d), as a tensor or a :class:`Geometry`. A server with
    coefficient κ gives ‖R − x̄_S‖² ≤ κ · mean over S of ‖x_i − x̄_S‖² for all S of n − F inputs, F
    being the f that it was told. With F = f the honest workers are such a set. With F > f the mean
    of both sides over all such sets of honest workers gives the same bound: the left is no less
    than ‖R − m̄‖², and the spread within a part is on average no more than the whole's.

    For the geometric median the theorem speaks of the exact minimiser. A few smoothed iterations
    have no bound: None, unless there may be a hundred of them and ν is small beside the spread.

    >>> import torch
    >>> from lit_byz.robust import ARC, CWTM, NNM
    >>> server = RobustAggregator(CWTM(f=1), clip=ARC(f=1), mix=NNM(f=1))
    >>> honest = torch.tensor([[1.0, 0.0], [1.0, 0.5], [0.5, 0.0], [1.0, 1.0]])
    >>> damage_bound(server, honest, f=1)
    1.1666...
    """
    server, f = as_server(OWNER, server), check_integer(OWNER, "f", f, minimum=0)
    if not isinstance(honest, Geometry):
        honest = Geometry(Basis(as_rows(OWNER, honest, "honest")[0]))
    h = honest.n
    kappa = server_kappa(server, h + f, f)
    if kappa is None:
        return None
    # From distances among them, which do not cancel where the mean is long.
    variance = float(honest.squared_distances[:h, :h].sum()) / (2 * h**2)
    rule = server.rule
    if isinstance(rule, GeometricMedian) and (
        rule.iterations < CONVERGED or rule.nu > NO_SMOOTHING * math.sqrt(variance)
    ):
        return None
    return math.sqrt(kappa * variance)
