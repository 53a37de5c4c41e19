"""From a config to runs."""
