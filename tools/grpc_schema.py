"""Compile the RocketMQ 5 protocol's .proto files: a descriptor set to load, and stubs for mypy.

Run it after a change of `src/pocketmq/proxy/wire/apache/rocketmq/v2/*.proto`; it needs
grpcio-tools. `tests/proxy/test_schema.py` compares its output with the repository's files.
"""

import sys
import tempfile
from importlib.resources import files
from pathlib import Path

WIRE = Path(__file__).parent.parent / "src/pocketmq/proxy/wire"
PACKAGE = "apache/rocketmq/v2"
NAMES = ("definition", "service")
DESCRIPTORS = "schema.binpb"


def compile_schema(target: Path) -> None:
    """Write the descriptor set and the stubs into a directory."""
    from grpc_tools import protoc

    well_known = files("grpc_tools") / "_proto"
    with tempfile.TemporaryDirectory() as scratch:
        status = protoc.main(
            [
                "protoc",
                f"--proto_path={WIRE}",
                f"--proto_path={well_known}",
                f"--descriptor_set_out={target / DESCRIPTORS}",
                "--include_imports",
                f"--pyi_out={scratch}",
                *(f"{PACKAGE}/{name}.proto" for name in NAMES),
            ]
        )
        if status:
            sys.exit(status)
        for name in NAMES:
            stub = (Path(scratch) / PACKAGE / f"{name}_pb2.pyi").read_text()
            (target / f"{name}.pyi").write_text(_renamed(stub))


def _renamed(stub: str) -> str:
    """Name the modules as they are here: they are loaded, not generated."""
    package = PACKAGE.replace("/", ".")
    return stub.replace(
        f"from {package} import definition_pb2 as _definition_pb2",
        "from pocketmq.proxy.wire import definition as _definition_pb2",
    )


if __name__ == "__main__":
    compile_schema(WIRE)
