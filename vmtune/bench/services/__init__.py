"""Benchmarks as the service offers them: runs, campaigns, comparisons."""
