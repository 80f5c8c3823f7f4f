"""Routes of the benchmarks."""
