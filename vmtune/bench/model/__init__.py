"""What a benchmark is to measure and what it recorded, as pure data and functions."""
