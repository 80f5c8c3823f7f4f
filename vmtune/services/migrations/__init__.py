"""Live migrations: ordered, carried out, observed, finalized."""
