"""Services with many hosts, clients and records, and what the web UI costs."""
