"""Train once: ``python pipelines/train.py --help``."""

import sys

from lit_byz.cli.train import main

if __name__ == "__main__":
    sys.exit(main())
