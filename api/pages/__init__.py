"""Pages that the service makes itself."""
