"""A host of simulated QEMUs, behind the same code that manages real ones."""
