"""Counters and rates, as tools ask for them."""
