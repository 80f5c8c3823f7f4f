"""Authentication, authorization and the audit log."""
