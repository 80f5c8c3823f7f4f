"""Hosts and their VMs, limits, pools and diagnostics."""
