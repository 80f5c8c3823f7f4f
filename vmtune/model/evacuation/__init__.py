"""Evacuations: all VMs of a host move to others."""
