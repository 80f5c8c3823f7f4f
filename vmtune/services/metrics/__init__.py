"""The service's own counters, and their exposition at ``/metrics``."""
