"""Keeping an intent: whether it can be kept, which settings for it, steering towards it. Pure."""
