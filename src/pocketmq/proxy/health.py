"""gRPC's own services beside RocketMQ's: health, for load balancers, and reflection, for tools."""

from typing import Any

import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from pocketmq.proxy.wire.schema import POOL, SERVICE


class ProxyHealth:
    """What the health service says of a proxy."""

    def __init__(self, servicer: Any) -> None:
        self._servicer = servicer

    async def leave(self) -> None:
        """Report that the proxy does not serve any more, so that no new clients come."""
        await self._servicer.enter_graceful_shutdown()


async def add_health(server: grpc.aio.Server) -> ProxyHealth:
    """Add both services to a server."""
    servicer = health.aio.HealthServicer()
    await servicer.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server, pool=POOL)
    return ProxyHealth(servicer)
