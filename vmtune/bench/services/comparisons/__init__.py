"""Comparisons of runs, and a metric over time."""
