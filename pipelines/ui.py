"""See the tracked runs in MLflow's UI: ``python pipelines/ui.py --help``."""

import sys

from lit_byz.cli.ui import main

if __name__ == "__main__":
    sys.exit(main())
