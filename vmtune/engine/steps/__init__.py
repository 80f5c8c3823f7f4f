"""Convergence steps: which are due, and carrying them out."""
