"""The migration benchmark: one live migration of a fresh VM."""
