"""What the server does with n vectors: clipping, mixing, rules, and their composition.

>>> import torch
>>> from lit_byz.robust import ARC, CWTM, NNM, RobustAggregator
>>> server = RobustAggregator(CWTM(f=1), clip=ARC(f=1), mix=NNM(f=1))
>>> x = torch.tensor([[1.0, 0.0], [1.0, 0.2], [0.8, 0.0], [1.0, 0.1], [-50.0, 0.0]])
>>> server.explain(x).clipped
tensor([False, False, False, False,  True])
"""

from lit_byz.robust._aggregator import Explanation, RobustAggregator
from lit_byz.robust._arc import ARC
from lit_byz.robust._average import Average
from lit_byz.robust._base import (
    Clip,
    GeometricRule,
    Mix,
    Rule,
)
from lit_byz.robust._basis import Basis
from lit_byz.robust._bucketing import Bucketing
from lit_byz.robust._caf import CAF
from lit_byz.robust._centered_clipping import CenteredClipping
from lit_byz.robust._columns import Reduction
from lit_byz.robust._coordinate_rule import CoordinateRule
from lit_byz.robust._cwmed import CWMed
from lit_byz.robust._cwtm import CWTM
from lit_byz.robust._geometric_median import GeometricMedian
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._krum import Krum, MultiKrum
from lit_byz.robust._mda import MDA
from lit_byz.robust._meamed import MeaMed
from lit_byz.robust._monna import MoNNA
from lit_byz.robust._nnm import NNM
from lit_byz.robust._no_clip import NoClip
from lit_byz.robust._no_mix import NoMix
from lit_byz.robust._registries import CLIPS, MIXES, RULES
from lit_byz.robust._smea import SMEA
from lit_byz.robust._static_clip import StaticClip

__all__ = [
    "ARC",
    "CAF",
    "CLIPS",
    "CWTM",
    "MDA",
    "MIXES",
    "NNM",
    "RULES",
    "SMEA",
    "Average",
    "Basis",
    "Bucketing",
    "CWMed",
    "CenteredClipping",
    "Clip",
    "CoordinateRule",
    "Explanation",
    "GeometricMedian",
    "GeometricRule",
    "Geometry",
    "Krum",
    "MeaMed",
    "Mix",
    "MoNNA",
    "MultiKrum",
    "NoClip",
    "NoMix",
    "Reduction",
    "RobustAggregator",
    "Rule",
    "StaticClip",
]
