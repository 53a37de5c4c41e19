"""The paper's figures and tables from tracked runs, and its claims against what they show."""
