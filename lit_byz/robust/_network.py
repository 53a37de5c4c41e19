"""Sorting networks: the same comparisons whatever the data, hence whole rows at a time."""

import functools

Comparator = tuple[int, int]


@functools.cache
def sorting_network(n: int) -> tuple[Comparator, ...]:
    """Batcher's odd-even merge sort on n wires: comparator (i, j) leaves the smaller value at i.

    It is made for the next power of two; wires beyond n would carry +inf, which no comparator
    moves, so those that touch them are left out.
    """
    comparators = []
    size = 1 << max(n - 1, 0).bit_length()
    span = 1
    while span < size:
        step = span
        while step >= 1:
            for start in range(step % span, size - step, 2 * step):
                for i in range(start, min(start + step, size - step)):
                    if i // (2 * span) == (i + step) // (2 * span) and i + step < n:
                        comparators.append((i, i + step))
            step //= 2
        span *= 2
    return tuple(comparators)


@functools.cache
def window_network(n: int, begin: int, end: int) -> tuple[Comparator, ...]:
    """The comparators needed to tell the sorted positions [begin, end) from those on either side.

    Read backwards: values on wires of one class may trade places without changing which values
    end inside the window, so a comparator within a class is useless; one between two classes is
    kept, and in front of it its two wires may trade places with each other.
    """
    labels = [0 if i < begin else 1 if i < end else 2 for i in range(n)]
    kept = []
    for fresh, (i, j) in enumerate(reversed(sorting_network(n)), start=3):
        if labels[i] != labels[j]:
            kept.append((i, j))
            labels[i] = labels[j] = fresh
    return tuple(reversed(kept))
