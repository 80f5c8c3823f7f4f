"""What the command prints: tables, values, progress."""
