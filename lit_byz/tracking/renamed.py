"""Metrics that were called otherwise before, and are found under both names."""

# The threshold of any clipping. Runs of ARC have it under its old name too, for one release.
THRESHOLD, OLD_THRESHOLD = "clip/threshold", "arc/threshold"
