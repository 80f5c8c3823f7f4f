"""Commands about profiles, plans and applications."""
