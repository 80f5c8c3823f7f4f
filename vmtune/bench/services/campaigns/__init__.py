"""Campaigns: planned, carried out run by run."""
