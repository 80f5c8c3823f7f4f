"""The server: sockets, protocol, TLS, logs."""
