"""Measure speed: ``python pipelines/benchmark.py --help``."""

import sys

from lit_byz.cli.benchmark import main

if __name__ == "__main__":
    sys.exit(main())
