"""Find breakdown points: ``python pipelines/breakdown.py --help``."""

import sys

from lit_byz.cli.breakdown import main

if __name__ == "__main__":
    sys.exit(main())
