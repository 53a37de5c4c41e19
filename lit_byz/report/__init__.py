"""Tables, figures and lines about studies and runs: from what the ledger says, and nothing else."""
