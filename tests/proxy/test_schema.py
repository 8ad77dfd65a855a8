"""The compiled schema is that of the .proto files, and every method of the service is answered."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import schema

TOOL: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "tools/grpc_schema.py"))
WIRE: Path = TOOL["WIRE"]


def test_compiling_again_gives_the_same_files(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools")
    TOOL["compile_schema"](tmp_path)
    for name in TOOL["NAMES"]:
        stub = f"{name}.pyi"
        assert (tmp_path / stub).read_text() == (WIRE / stub).read_text()
    assert _own_files(tmp_path) == _own_files(WIRE)


def test_the_messages_do_not_stand_in_the_default_pool() -> None:
    """Apache's Python client puts its own there, under the same names."""
    from google.protobuf import descriptor_pool

    with pytest.raises(KeyError):
        descriptor_pool.Default().FindFileByName("apache/rocketmq/v2/definition.proto")
    assert d.Message.DESCRIPTOR.full_name == "apache.rocketmq.v2.Message"


def test_times_have_the_methods_of_well_known_types() -> None:
    message = d.Message()
    message.system_properties.born_timestamp.FromMilliseconds(1_500)
    assert message.system_properties.born_timestamp.ToMilliseconds() == 1_500
    assert schema.exported("definition")["OK"] == d.Code.OK == 20000


def _own_files(folder: Path) -> list[bytes]:
    """Those of RocketMQ: Google's own may differ from one protoc to the next."""
    raw = (folder / TOOL["DESCRIPTORS"]).read_bytes()
    files = descriptor_pb2.FileDescriptorSet.FromString(raw).file
    return [each.SerializeToString() for each in files if each.package == "apache.rocketmq.v2"]
