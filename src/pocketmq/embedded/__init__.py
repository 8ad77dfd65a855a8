"""A whole cluster on this machine: name server and brokers, in this process or as children.

`Cluster` is blocking, `pocketmq.embedded.aio.Cluster` is the same for asyncio. Owns starting,
watching, stopping and harming the parts; independent of what a request means.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pocketmq.embedded.cluster import Cluster as Cluster

__all__ = ["Cluster"]


def __getattr__(name: str) -> Any:
    # A broker process imports this package, too, and has no use for what starts clusters.
    if name == "Cluster":
        from pocketmq.embedded.cluster import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
