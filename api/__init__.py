"""The HTTP API: FastAPI on a unix socket and on the loopback address. Reached as vmtune.api."""
