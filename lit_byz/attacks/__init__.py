"""What the f Byzantine workers send.

>>> import torch
>>> from lit_byz.attacks import FOE
>>> from lit_byz.robust import ARC, CWTM, NNM, RobustAggregator
>>> server = RobustAggregator(CWTM(f=1), clip=ARC(f=1), mix=NNM(f=1))
>>> honest = torch.tensor([[1.0, 0.0], [1.0, 0.5], [0.5, 0.0], [1.0, 1.0]])
>>> FOE()(honest, f=1, server=server).shape
torch.Size([2])
"""

from lit_byz.attacks._alie import ALIE
from lit_byz.attacks._base import ATTACKS, Attack, Move, Scene, State
from lit_byz.attacks._foe import FOE
from lit_byz.attacks._gaussian import GaussianNoise
from lit_byz.attacks._label_flip import LabelFlip
from lit_byz.attacks._mimic import Mimic
from lit_byz.attacks._min_max import MinMax, MinSum
from lit_byz.attacks._non_finite import NonFinite
from lit_byz.attacks._none import NoAttack
from lit_byz.attacks._searched import SearchedAttack
from lit_byz.attacks._sign_flip import SignFlip
from lit_byz.attacks._span import Span
from lit_byz.attacks._strength import STRENGTHS, parse_strength, strength_label
from lit_byz.attacks._zero import ZeroGradient

__all__ = [
    "ALIE",
    "ATTACKS",
    "FOE",
    "STRENGTHS",
    "Attack",
    "GaussianNoise",
    "LabelFlip",
    "Mimic",
    "MinMax",
    "MinSum",
    "Move",
    "NoAttack",
    "NonFinite",
    "Scene",
    "SearchedAttack",
    "SignFlip",
    "Span",
    "State",
    "ZeroGradient",
    "parse_strength",
    "strength_label",
]
