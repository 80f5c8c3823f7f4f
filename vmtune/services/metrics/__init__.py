"""What the service counts of its own work, and how ``/metrics`` shows it."""
