"""Operating a cluster, ours or Apache's: ask and tell all its servers, at once and by type.

`pocketmq.aio.Admin` is the way in; each of its rooms (topics, groups, …) is a module here. Knows
the wire and the clients' engine; what is printed, and how, is for others.
"""
