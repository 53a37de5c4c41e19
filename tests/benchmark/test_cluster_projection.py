"""What many cores would make of many runs: arithmetic, from numbers that are easy to check."""

from dataclasses import replace

import pytest

from lit_byz.benchmark._projection import Costs, Work, project
from lit_byz.benchmark._ratio import Spread
from lit_byz.benchmark.cluster import between

WORK = Work(runs=3600, core_seconds=360_000, longest=200, checkpoint_bytes=360e9)
COSTS = Costs(
    cores=2,
    driver=0.01,
    notes_second=2.0,
    notes_per_second=4000,
    server_run=0.2,
    server_second=0.001,
    server_byte=1e-9,
    database_run=0.1,
    database_second=0.0,
    commits_run=50,
    commits_per_second=1000,
)


def test_ten_cores() -> None:
    row = project(WORK, COSTS, 10)
    assert row.hours == pytest.approx(10)
    assert row.runs_per_second == pytest.approx(0.1)
    assert row.driver == pytest.approx(0.001)
    assert row.board == pytest.approx(10 * 2 / 4000)
    assert row.server == pytest.approx((0.1 * 0.2 + 10 * 0.001) / 2)
    assert row.database == pytest.approx(max(0.1 * 0.1 / 2, 0.1 * 50 / 1000))
    assert row.checkpoints == pytest.approx(row.server + 10e6 * 1e-9 / 2)
    assert row.bottleneck == "cores"
    assert row.checkpoint_hours == row.hours


def test_a_part_with_too_much_to_do_sets_the_pace() -> None:
    row = project(WORK, replace(COSTS, driver=0.5), 1000)
    assert row.bottleneck == "driver"
    assert row.driver == pytest.approx(5)
    assert row.hours == pytest.approx(0.1 * 5)
    slower = project(WORK, replace(COSTS, server_byte=1e-8), 1000)
    assert slower.checkpoint_hours > slower.hours


def test_no_run_is_shorter_than_the_longest() -> None:
    idle = replace(COSTS, server_run=0.02, server_second=0.0, notes_per_second=1e6)
    row = project(WORK, idle, 100_000)
    assert row.bottleneck == "longest run"
    assert row.hours * 3600 == pytest.approx(200)
    assert row.runs_per_second == pytest.approx(18)


def test_a_part_with_too_much_to_do_makes_the_longest_run_longer() -> None:
    row = project(WORK, COSTS, 100_000)
    assert row.bottleneck == "server"
    assert row.server == pytest.approx((18 * 0.2 + 1800 * 0.001) / 2)
    assert row.hours * 3600 == pytest.approx(200 * row.server)


def test_what_is_known_within_bounds_gives_bounds() -> None:
    """Also where the lower one is below nothing, as a difference of two measurements may be."""
    server, database = Spread(0.001, -0.002, 0.003), Spread(0.0, -0.001, 0.01)
    within = between(WORK, COSTS, (server, database), 10)
    assert within["server"] == pytest.approx((0.1 * 0.2 / 2, (0.1 * 0.2 + 10 * 0.003) / 2))
    assert within["database"] == pytest.approx((0.1 * 0.1 / 2, (0.1 * 0.1 + 10 * 0.01) / 2))
    uploads = 10e6 * 1e-9 / 2
    assert within["checkpoints"] == pytest.approx([load + uploads for load in within["server"]])
