"""Commands about the service itself."""
