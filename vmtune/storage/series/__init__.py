"""Series of samples, rounds and values, packed for storage."""
