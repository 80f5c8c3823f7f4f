"""Runs as files: vmtune's JSON, tables, Parquet."""
