"""The service's settings: where they come from, what they accept, what they mean."""
