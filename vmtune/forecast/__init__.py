"""Whether a live migration will end, when, and how long the guest will stand still. Pure."""
