"""Webhooks: subscriptions, the outbox, and sending."""
