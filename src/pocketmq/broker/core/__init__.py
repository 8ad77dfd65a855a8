"""Mechanisms that the broker's features share: clocks, alarms, saving. Nothing here knows the broker."""
