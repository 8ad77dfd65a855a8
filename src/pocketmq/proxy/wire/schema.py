"""Loads the compiled .proto files into a descriptor pool of their own.

Apache's Python client registers the same names in protobuf's default pool, which refuses to hold
them twice; a test that uses that client and an embedded cluster in one process needs both.
"""

from importlib.resources import files
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper

SERVICE = "apache.rocketmq.v2.MessagingService"
_PACKAGE = "apache/rocketmq/v2"


def _load() -> descriptor_pool.DescriptorPool:
    raw = (files("pocketmq.proxy.wire") / "schema.binpb").read_bytes()
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(raw).file:
        pool.Add(file)
    return pool


POOL = _load()


def exported(name: str) -> dict[str, Any]:
    """Return the messages and enumerations of one .proto file by their names."""
    file = POOL.FindFileByName(f"{_PACKAGE}/{name}.proto")
    found: dict[str, Any] = {
        each: message_factory.GetMessageClass(descriptor)
        for each, descriptor in file.message_types_by_name.items()
    }
    for each, enumeration in file.enum_types_by_name.items():
        found[each] = enum_type_wrapper.EnumTypeWrapper(enumeration)
        found |= {value.name: value.number for value in enumeration.values}
    return found
