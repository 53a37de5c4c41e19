"""Tune a cell against its worst attack: ``python pipelines/tune.py --help``."""

import sys

from lit_byz.cli.tune import main

if __name__ == "__main__":
    sys.exit(main())
