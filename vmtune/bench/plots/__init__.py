"""A run as one picture: tracks over time, marks and tables."""
