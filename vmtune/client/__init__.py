"""The `vmtune` command and its HTTP client. They know the service by its API only."""
