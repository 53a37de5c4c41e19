"""Who computes the runs: this process, local processes or a Ray cluster; and training one run."""
