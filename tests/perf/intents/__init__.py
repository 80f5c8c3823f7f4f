"""Migrations by intent next to the policies of others, on real hosts and simulated."""
