"""Operating a cluster, ours or Apache's: typed requests to all its servers at once.

`pocketmq.aio.Admin` is the entry point; each of its attributes (topics, groups, …) is a module
here. Uses the wire and the clients' engine; independent of what is printed, and how.
"""
