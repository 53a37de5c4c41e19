"""Fall of empires."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from lit_byz.attacks._base import ATTACKS, Scene
from lit_byz.attacks._searched import SearchedAttack
from lit_byz.robust import Basis


@ATTACKS.register("foe")
@dataclass(frozen=True)
class FOE(SearchedAttack):
    """Fall of empires: sends (1 − τ) m̄, against the honest mean.

    Xie et al., *Fall of Empires: Breaking Byzantine-tolerant SGD by Inner Product Manipulation*,
    UAI 2020. τ = 2 is sign flipping.

    The authors' library sends −τ' m̄ instead (inner product manipulation): its τ' is τ − 1 here.
    ``search="published"`` starts where that library does, at τ' = 0: at τ = 1, zeros.

    >>> FOE(tau=3.0)(torch.tensor([[1.0, 0.0], [3.0, 2.0]]), f=1)
    tensor([-4., -2.])
    """

    efforts: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        **SearchedAttack.efforts,
        "published": {**SearchedAttack.efforts["published"], "start": 1.0},
    }

    search: Literal["grid", "line", "published", "coarse"] = "grid"

    def line(self, scene: Scene) -> tuple[Basis, torch.Tensor, torch.Tensor]:
        return scene.honest, scene.mean, -scene.mean
