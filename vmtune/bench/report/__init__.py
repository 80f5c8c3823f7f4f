"""Comparisons as reports: for a terminal, as Markdown and as HTML."""
