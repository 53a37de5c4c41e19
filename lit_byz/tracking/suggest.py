"""What a study tries next."""

import itertools
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lit_byz.config.grid import Values
from lit_byz.config.search_space import Problem
from lit_byz.tracking.trial_storage import digest

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

# Trials at random before the sampler trusts what it has seen.
STARTUP = 6


def suggest(problem: Problem, trials: "Sequence[FrozenTrial]") -> Values:
    """What to try next, from the seed, the number of the trial and what is known so far."""
    import optuna

    seed = problem.reference()[0].seed
    own_seed = int(digest(f"{seed} {len(trials)}")[:8], 16)
    # In a study of its own, so that nothing is stored before it is known to be new.
    scratch = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(
            seed=own_seed, n_startup_trials=STARTUP, constant_liar=True
        ),
    )
    scratch.add_trials(trials)
    space = problem.space
    asked = scratch.ask({key: part.distribution() for key, part in space.items()}).params
    tried = [trial.params for trial in trials]
    params = {key: part.rounded(asked[key]) for key, part in space.items()}
    if params not in tried:
        return params
    if asked not in tried:
        return asked
    product = itertools.product(*(part.values() for part in space.values()))
    untried = [
        values for row in product if (values := dict(zip(space, row, strict=True))) not in tried
    ]
    return random.Random(own_seed).choice(untried)
