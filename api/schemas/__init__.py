"""What the API takes and gives: one module for each resource, each view built by ``of``."""
