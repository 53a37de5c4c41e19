"""A cluster on this machine, to try things out: ``python pipelines/cluster.py --help``."""

import sys

from lit_byz.cli.cluster import main

if __name__ == "__main__":
    sys.exit(main())
