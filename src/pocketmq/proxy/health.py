"""gRPC's health service, by which load balancers see whether a proxy serves."""

import asyncio
from collections.abc import AsyncIterator

from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from pocketmq.proxy.methods import Call, CallFailed, GrpcCode, Method, MethodKind, Methods
from pocketmq.proxy.wire.schema import SERVICE

NAME = "grpc.health.v1.Health"
_Status = health_pb2.HealthCheckResponse


class ProxyHealth:
    """What the health service says of a proxy: of all of it, and of RocketMQ's service."""

    def __init__(self) -> None:
        self._left = asyncio.Event()

    @property
    def methods(self) -> Methods:
        """The service's methods."""
        return {
            f"/{NAME}/Check": Method(MethodKind.ONE, self._check),
            f"/{NAME}/Watch": Method(MethodKind.MANY, self._watch),
        }

    def leave(self) -> None:
        """Report that the proxy does not serve any more, so that no new clients come."""
        self._left.set()

    async def _check(self, raw: bytes, _: Call) -> bytes:
        service = _service(raw)
        if not _is_ours(service):
            raise CallFailed(GrpcCode.NOT_FOUND, f"no service {service[:80]!r}")
        return self._state()

    async def _watch(self, raw: bytes, _: Call) -> AsyncIterator[bytes]:
        if _is_ours(_service(raw)):
            if not self._left.is_set():
                yield self._state()
                await self._left.wait()
            yield self._state()
        else:
            yield _answer(_Status.SERVICE_UNKNOWN)
        await asyncio.Event().wait()  # until the client ends it

    def _state(self) -> bytes:
        return _answer(_Status.NOT_SERVING if self._left.is_set() else _Status.SERVING)


def _is_ours(service: str) -> bool:
    return service in ("", SERVICE)


def _service(raw: bytes) -> str:
    try:
        return str(health_pb2.HealthCheckRequest.FromString(raw).service)
    except DecodeError as error:
        text = "the request is not a valid HealthCheckRequest"
        raise CallFailed(GrpcCode.INVALID_ARGUMENT, text) from error


def _answer(status: int) -> bytes:
    return bytes(_Status(status=status).SerializeToString())
