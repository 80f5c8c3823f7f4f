"""``vmtune tune``: find better settings, and prove that they are better."""
