"""The dashboard: a cluster in the browser, PocketMQ's or Apache's.

Queries the cluster through `pocketmq.admin` alone. The web library is imported only in here.
"""
