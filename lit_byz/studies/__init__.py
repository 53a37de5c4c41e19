"""What to compute next: strategies that propose runs and hear of outcomes, and nothing else."""
