"""Backups, restores and checks of the databases."""
