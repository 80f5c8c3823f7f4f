"""Access control: scopes, tokens, and the audit log's entries."""
