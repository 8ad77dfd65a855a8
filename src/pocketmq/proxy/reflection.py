"""gRPC's reflection service, by which tools learn the services and messages of a proxy."""

from collections.abc import Callable
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError
from grpc_reflection.v1alpha import reflection_pb2 as wire

from pocketmq.proxy import health
from pocketmq.proxy.methods import CallFailed, Exchange, GrpcCode, Method, MethodKind, Methods
from pocketmq.proxy.wire.schema import POOL, SERVICE

NAME = "grpc.reflection.v1alpha.ServerReflection"
_SERVICES = sorted((SERVICE, health.NAME, NAME))


def methods() -> Methods:
    """Return the service's method."""
    return {f"/{NAME}/ServerReflectionInfo": Method(MethodKind.BOTH, _describe)}


async def _describe(exchange: Exchange) -> None:
    async for raw in exchange.messages():
        try:
            request = wire.ServerReflectionRequest.FromString(raw)
        except DecodeError as error:
            text = "the request is not a valid ServerReflectionRequest"
            raise CallFailed(GrpcCode.INVALID_ARGUMENT, text) from error
        response = _answer(request)
        response.original_request.CopyFrom(request)
        await exchange.write(response.SerializeToString())


def _answer(request: Any) -> Any:
    asked = request.WhichOneof("message_request")
    if asked == "list_services":
        named = [wire.ServiceResponse(name=name) for name in _SERVICES]
        listed = wire.ListServiceResponse(service=named)
        return wire.ServerReflectionResponse(list_services_response=listed)
    find = _FINDERS.get(asked)
    if find is None:
        return _error(GrpcCode.UNIMPLEMENTED, "extensions are not described: there are none")
    try:
        files = _with_imports(find(getattr(request, asked)))
    except KeyError:
        return _error(GrpcCode.NOT_FOUND, "it is not part of a service here")
    found = wire.FileDescriptorResponse(file_descriptor_proto=list(files.values()))
    return wire.ServerReflectionResponse(file_descriptor_response=found)


_FINDERS: dict[str | None, Callable[[str], Any]] = {
    "file_by_filename": POOL.FindFileByName,
    "file_containing_symbol": POOL.FindFileContainingSymbol,
}


def _error(code: GrpcCode, text: str) -> Any:
    failure = wire.ErrorResponse(error_code=code, error_message=text)
    return wire.ServerReflectionResponse(error_response=failure)


def _with_imports(file: Any) -> dict[str, bytes]:
    """Return a .proto file and all that it imports, compiled, by name."""
    found: dict[str, bytes] = {}
    waiting = [file]
    while waiting:
        each = waiting.pop()
        if each.name not in found:
            compiled = descriptor_pb2.FileDescriptorProto()
            each.CopyToProto(compiled)
            found[each.name] = compiled.SerializeToString()
            waiting += each.dependencies
    return found
