"""Draw sweeps and studies again, from the store: ``python pipelines/report.py --help``."""

import sys

from lit_byz.cli.report import main

if __name__ == "__main__":
    sys.exit(main())
