"""Handing messages out: pulls, long polling, and queries for single messages."""
