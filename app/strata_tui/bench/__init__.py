"""Measuring arms against each other: runs in turn, their spread, ratios by round, texts compared."""
