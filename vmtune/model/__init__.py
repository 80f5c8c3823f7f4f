"""What vmtune knows, as pure data and functions: no I/O, no clock, no database."""
