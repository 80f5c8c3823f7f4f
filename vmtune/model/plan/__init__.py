"""The plan for one VM, and what became of each of its values."""
