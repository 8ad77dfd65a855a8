"""Starts a cluster."""

from pocketmq import Cluster

if __name__ == "__main__":
    with Cluster():
        pass
