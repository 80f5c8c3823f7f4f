"""Benchmark runs: requested, queued, run, recorded."""
