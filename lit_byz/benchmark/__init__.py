"""Speed, as ratios: this library and a public one on the same data in the same process.

One module per benchmark. It says what it measures in ``DESCRIPTION``, adds its options to a parser
in ``options`` and does the work in ``run``; ``pipelines/benchmark.py`` lists them by name.
"""
