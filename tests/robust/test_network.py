"""Sorting networks, by the 0-1 principle: what sorts every vector of bits sorts everything."""

import itertools

import numpy as np

from lit_byz.robust._network import sorting_network, window_network
from tests._each import each


def run(comparators: tuple, values: np.ndarray) -> np.ndarray:
    """Columns of ``values`` (n, many) through the network."""
    wires = values.copy()
    for i, j in comparators:
        low, high = np.minimum(wires[i], wires[j]), np.maximum(wires[i], wires[j])
        wires[i], wires[j] = low, high
    return wires


def all_bits(n: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=n)), dtype=np.int8).T.reshape(n, -1)


@each("n", range(1, 14))
def test_every_vector_of_bits_is_sorted(n: int) -> None:
    bits = all_bits(n)
    assert np.array_equal(run(sorting_network(n), bits), np.sort(bits, axis=0))


@each("n", range(1, 12))
def test_every_window_holds_the_right_values(n: int) -> None:
    """Inside a window the order may be any; which values are inside may not."""
    bits = all_bits(n)
    ordered = np.sort(bits, axis=0)
    for begin in range(n):
        for end in range(begin + 1, n + 1):
            found = run(window_network(n, begin, end), bits)
            assert np.array_equal(found[begin:end].sum(axis=0), ordered[begin:end].sum(axis=0))


@each("n", [16, 17, 31, 33, 39, 60, 64, 100])
def test_large_networks_on_random_numbers(n: int) -> None:
    values = np.random.default_rng(n).normal(size=(n, 200))
    ordered = np.sort(values, axis=0)
    assert np.array_equal(run(sorting_network(n), values), ordered)
    for f in {1, n // 4, (n - 1) // 2}:
        found = run(window_network(n, f, n - f), values)
        assert np.array_equal(np.sort(found[f : n - f], axis=0), ordered[f : n - f])


def test_a_window_needs_fewer_comparisons() -> None:
    assert len(window_network(39, 9, 30)) < len(sorting_network(39))
