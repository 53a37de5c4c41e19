"""The clips, mixes and rules by name, and how a user writes one more."""

from lit_byz.registry import Registry

CLIPS = Registry(
    "clip",
    "lit_byz.robust.Clip",
    "from lit_byz.robust import Clip\n"
    "class MyClip(Clip):\n"
    "    def threshold(self, norms): return norms.median(-1).values",
)
MIXES = Registry(
    "mix",
    "lit_byz.robust.Mix",
    "from lit_byz.robust import Mix\n"
    "class MyMix(Mix):\n"
    "    def matrix(self, geometry, step=0): return (0 * geometry.norms + 1).diag_embed()",
)
RULES = Registry(
    "rule",
    "lit_byz.robust.Rule",
    "from lit_byz.robust import Rule\n"
    "class MyRule(Rule):\n"
    "    def aggregate(self, x): return x.mean(0)",
)
