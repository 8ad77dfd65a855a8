"""Periodic work: saving, expiry, deleting old messages, checks of the store."""
