"""Everything about who may do what."""
