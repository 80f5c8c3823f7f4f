"""Scenarios: what one measurement is to do, for each kind of benchmark."""
