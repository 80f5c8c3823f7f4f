"""Who may do what: scopes, tokens, and the audit log's entries."""
