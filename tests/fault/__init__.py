"""Faults at random moments of real migrations, and what became of every record."""
