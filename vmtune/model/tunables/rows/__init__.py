"""The rows of the table of tunables, by what they are about."""
