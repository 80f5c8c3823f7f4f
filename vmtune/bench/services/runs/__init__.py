"""Benchmark runs: ordered, queued, carried out, recorded."""
