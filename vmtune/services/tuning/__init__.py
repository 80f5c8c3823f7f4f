"""Profiles, plans, applications and their proof."""
