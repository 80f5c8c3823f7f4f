"""A host of QEMUs that are not there, behind the same code that drives real ones."""
