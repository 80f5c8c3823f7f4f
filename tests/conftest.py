"""What holds for every test."""

import signal

from hypothesis import HealthCheck, settings

# A test says nothing about speed: how long an example takes is the machine's affair.
settings.register_profile("vmtune", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make check` tries fewer examples of each property; `make test` all of them.
settings.register_profile("quick", settings.get_profile("vmtune"), max_examples=15)
settings.load_profile("vmtune")

# A job in a shell's background ignores SIGINT, and so would every program that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
