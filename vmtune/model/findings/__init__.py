"""Every finding of preflight and doctor, once: code, severity, reason and remedy."""
