"""What holds for every test."""

from hypothesis import HealthCheck, settings

# A test says nothing about speed: how long an example takes is the machine's affair.
settings.register_profile("vmtune", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("vmtune")
