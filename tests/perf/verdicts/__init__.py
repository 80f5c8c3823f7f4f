"""Comparisons of runs: error rates by simulation, other tools, scale, and `vmtune tune`."""
