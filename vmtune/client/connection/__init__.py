"""The command's connection to the service: HTTP, events, credentials."""
