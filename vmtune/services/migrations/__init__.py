"""Live migrations: requests, queue, jobs, observation."""
