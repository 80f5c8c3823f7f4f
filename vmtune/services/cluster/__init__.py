"""Several services on one PostgreSQL database."""
