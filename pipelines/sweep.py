"""Run a whole attack grid: ``python pipelines/sweep.py --help``."""

import sys

from lit_byz.cli.sweep import main

if __name__ == "__main__":
    sys.exit(main())
