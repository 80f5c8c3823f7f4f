"""The tables. Nothing outside the storage sees these classes."""
