"""The only node of a Ray cluster that computes crashes; another one joins later."""

import random
from pathlib import Path

import pytest

from tests.cli import _kills
from tests.faults._disturbed import Disturbed, Judge, Reference, cleaned_up
from tests.faults.test_ray_cluster import NODE, cluster

pytestmark = [pytest.mark.services, pytest.mark.timeout(900)]


def test_the_last_node(
    tmp_path: Path, reference: Reference, judge: Judge, chance: random.Random
) -> None:
    sweep = Disturbed(tmp_path / "sweep")
    sweep.longest = 600.0
    with cluster() as made, cleaned_up(sweep):
        node = made.add_node(num_cpus=2, **NODE)
        sweep.options = ("--executor", "ray", "--ray-address", made.address)
        sweep.start()
        assert sweep.held_each(chance.randrange(11, 40))
        made.remove_node(node, allow_graceful=False)
        # Ray takes notice, and both tasks are given to it again.
        _kills.wait_until("both are lost", lambda: sweep.output.count("tried again") == 2, 120)
        assert sweep.process is not None
        assert sweep.process.poll() is None, sweep.output
        made.add_node(num_cpus=2, **NODE)
        sweep.complete()
    verdict = judge("the last node of a Ray cluster", 1, sweep, reference)
    assert (verdict.attempts, verdict.resumed) == (0, 2)
    assert sweep.codes == [0], sweep.said  # it has waited
