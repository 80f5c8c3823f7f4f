"""Builds the services; the only place that chooses concrete drivers."""
