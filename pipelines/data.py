"""Fetch and show data sets: ``python pipelines/data.py --help``."""

import sys

from lit_byz.cli.data import main

if __name__ == "__main__":
    sys.exit(main())
