"""Which port each broker listens on, and keeping it from one start to the next.

With a data directory the ports are written down in `ports.json` there. A remembered or usual port
is a wish: if somebody else has it by now, any free one does, because clients ask the name server.
"""

import logging
import socket
from pathlib import Path

import msgspec

from pocketmq.errors import StoreError

logger = logging.getLogger("pocketmq.cluster")

PORTS_FILE = "ports.json"
FIRST_BROKER_PORT = 10911
PORT_STEP = 10
"""A Java broker also uses the ports two below and one above its own; ours keep that distance."""


def usual_port(first: int, number: int) -> int:
    """Give the port of the n-th broker, counting from 0; 0 stays any free one."""
    return first + PORT_STEP * number if first else 0


def is_free(host: str, port: int) -> bool:
    """Tell whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as asyncio's servers do
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def wished_port(host: str, port: int, name: str) -> int:
    """Give the wished port if it is free, else 0 for any."""
    if port == 0 or is_free(host, port):
        return port
    logger.warning("port %d is in use: %s takes any free one", port, name)
    return 0


def read_ports(data: Path | None) -> dict[str, int]:
    """Give the ports brokers had the last time; a missing or broken file is no reason to stop."""
    if data is None:
        return {}
    path = data / PORTS_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, int])
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, msgspec.MsgspecError) as problem:
        logger.warning("%s is passed over: %s", path, problem)
        return {}


def write_ports(data: Path | None, ports: dict[str, int]) -> None:
    """Write the ports down. Raises `StoreError`."""
    if data is None:
        return
    path = data / PORTS_FILE
    beside = path.with_suffix(".new")
    try:
        beside.write_bytes(msgspec.json.encode(ports))
        beside.replace(path)
    except OSError as problem:
        raise StoreError(f"cannot write {path}: {problem.strerror}") from problem
