"""Evacuations: planned, carried out, followed."""
