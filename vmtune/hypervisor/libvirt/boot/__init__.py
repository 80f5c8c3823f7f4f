"""Settings of the boot route that only a domain's XML has: read, and written."""
