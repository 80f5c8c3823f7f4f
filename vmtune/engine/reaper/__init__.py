"""The dirty-ring reaper: its settings, its policies, and the loop that empties the rings."""
