"""A network that breaks on request; it lives with the embedded cluster, which uses it, too."""

from pocketmq.embedded.fault_proxy import FaultProxy, Way

__all__ = ["FaultProxy", "Way"]
