"""Benchmarks: programs that print what they measure, and JSON as their last line.

Never part of the test suite. Figures come from this machine; every program says what
about it limits them.
"""
