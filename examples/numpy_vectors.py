"""Robust aggregation alone, on NumPy vectors: no training, no tracking, no config.

python examples/numpy_vectors.py

What goes in as a NumPy array comes back as one; tensors and lists of vectors do as well.
"""

import numpy as np

from lit_byz.attacks import ALIE, FOE
from lit_byz.robust import ARC, CWTM, NNM, Average, RobustAggregator, theory

F, HONEST, SIZE = 2, 10, 1000


def main() -> dict[str, float]:
    """Ten honest vectors and two Byzantine ones: what the server makes of them."""
    rng = np.random.default_rng(1)
    honest = 1.0 + rng.normal(size=(HONEST, SIZE))
    honest[0] *= 5  # one worker's data is unlike the others'
    mean = honest.mean(0)

    servers = {
        "average": RobustAggregator(Average()),
        "cwtm": RobustAggregator(CWTM(F)),
        "cwtm ∘ nnm": RobustAggregator(CWTM(F), mix=NNM(F)),
        "cwtm ∘ nnm ∘ arc": RobustAggregator(CWTM(F), clip=ARC(F), mix=NNM(F)),
    }
    damages = {}
    for name, server in servers.items():
        worst = 0.0
        for attack in (FOE(), ALIE()):
            sent = attack(honest, f=F, server=server)
            received = np.concatenate([honest, np.tile(sent, (F, 1))])
            worst = max(worst, float(np.linalg.norm(server(received) - mean)))
        damages[name] = worst
        print(f"{name:<17} ‖R − m̄‖ = {worst:8.2f}")

    server = servers["cwtm ∘ nnm ∘ arc"]
    sent = FOE()(honest, f=F, server=server)
    told = server.explain(np.concatenate([honest, np.tile(sent, (F, 1))]))
    clipped = [row for row, was in enumerate(told.clipped.tolist()) if was]
    print(f"threshold C = {float(told.threshold):.1f}, rows that were clipped: {clipped}")
    bound = theory.damage_bound(server, honest, f=F)
    print(f"no attack can do more damage than {bound:.1f}")
    return damages


if __name__ == "__main__":
    main()
