"""The commands that a person types: parse, call, print."""
