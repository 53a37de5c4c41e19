"""Tables and figures, from tracked runs only."""
