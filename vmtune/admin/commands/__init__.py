"""Subcommands that work on the databases or on this machine, without a service."""
