"""Views of the benchmarks."""
