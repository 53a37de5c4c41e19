"""Scale the initial parameters: ``python pipelines/init_scaling.py --help``."""

import sys

from lit_byz.cli.init_scaling import main

if __name__ == "__main__":
    sys.exit(main())
