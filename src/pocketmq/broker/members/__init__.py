"""Consumers and producers that are connected, and requests relayed to them."""
