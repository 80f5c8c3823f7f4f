"""Campaigns: planned, and run one run at a time."""
