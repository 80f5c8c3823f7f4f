"""Studies: the search for better settings of a scenario, and the proof of them. Pure."""
