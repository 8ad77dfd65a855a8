"""Handing messages out: pulls, long polling, and queries for single messages.

`requests` decides what a pull gets and how long it is held; `suspended_pulls` has those that wait,
and `long_polling` wakes them when a message arrives or their time is over.
"""
