"""Benchmarks: scenarios, single runs of them, and what runs are reduced to.

Below the services: nothing here knows of the store, of jobs or of the API.
"""
