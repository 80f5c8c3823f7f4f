"""The use cases: profiles, plan, apply, verify, migrate. They know drivers by Protocol only."""
