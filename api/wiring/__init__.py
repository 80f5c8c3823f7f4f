"""Builds the services; the only place that picks concrete drivers."""
