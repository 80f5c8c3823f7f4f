"""Runs: what one measurement recorded, raw."""
