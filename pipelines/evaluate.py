"""Evaluate the model that a run has kept: ``python pipelines/evaluate.py --help``."""

import sys

from lit_byz.cli.evaluate import main

if __name__ == "__main__":
    sys.exit(main())
