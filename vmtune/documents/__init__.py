"""Reads and writes JSON and TOML documents strictly: every problem at once, each with its place."""
