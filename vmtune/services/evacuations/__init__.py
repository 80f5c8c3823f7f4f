"""Evacuations: planning, execution, progress."""
