"""Commands about migrations and evacuations."""
