"""Convergence steps: which are due, and executing them."""
