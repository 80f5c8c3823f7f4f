"""Campaigns: which arms are compared, in how many randomised blocks."""
