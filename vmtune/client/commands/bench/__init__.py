"""``vmtune bench``, ``compare`` and ``reference``."""
