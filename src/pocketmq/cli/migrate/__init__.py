"""`pocketmq migrate`: from one cluster to another, while producers and consumers go on."""

from pocketmq.cli.migrate import command

__all__ = ["command"]
