"""Durable jobs: long work that survives the death of the service.

:mod:`vmtune.jobs.base` has the interface that services use,
:mod:`vmtune.jobs.durable` the engine of the running service.
"""
