"""Studies as the service runs them: the search, its confirmation, and the draft of a profile."""
