"""Reads and writes of records, one module for each kind."""
