"""The dashboard: a cluster in the browser, PocketMQ's or Apache's.

Asks the cluster through `pocketmq.admin` alone. The web library is imported here and nowhere else.
"""
