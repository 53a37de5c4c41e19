"""``python -m lit_byz``: the same as ``lit-byz``."""

import os
import sys

if __name__ == "__main__":
    here = os.getcwd()  # noqa: PTH109 - as Python writes it into sys.path
    # Python looks in the working directory first here, where a file would hide an installed module.
    # Commands look there too, but last.
    if sys.path[0] == here and not __file__.startswith(os.path.join(here, "lit_byz")):  # noqa: PTH118
        del sys.path[0]

    from lit_byz.cli.door import main

    sys.exit(main())
