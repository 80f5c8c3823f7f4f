"""The doctor's rules: host diagnostics, judged from facts alone."""
