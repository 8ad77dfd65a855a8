"""How long servers take from their start to the first message stored, and what they cost idle."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.java.processes import PATIENCE, until
from benchmarks.java.rows import Cell, Row
from benchmarks.java.scale import Scale
from benchmarks.java.servers import Java, JavaServers, OurServers, Servers
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.requests.sending import SendRequestV2


def start_row(java: Java, home: Path, scale: Scale) -> Iterator[Row]:
    times: dict[str, list[float]] = {"Java/Java": [], "ours/ours": []}
    for _ in range(scale.starts):
        times["Java/Java"].append(_first_send(JavaServers(java, home)))
        times["ours/ours"].append(_first_send(OurServers(home)))
    cells = {name: Cell(median(each)) for name, each in times.items()}
    yield Row("start to first message stored", "s", cells)


def idle_rows(java: Java, home: Path, scale: Scale) -> Iterator[Row]:
    """Measure servers with one message stored, while nothing happens."""
    memory: dict[str, Cell] = {}
    processor: dict[str, Cell] = {}
    servers: Servers
    for name, servers in (("Java/Java", JavaServers(java, home)), ("ours/ours", OurServers(home))):
        with servers:
            until(lambda port=servers.port: _send(port), "a message to be stored")  # type: ignore[misc]
            time.sleep(scale.idle)  # what follows a start is not idle
            used, began = servers.cpu(), time.perf_counter()
            time.sleep(scale.idle)
            share = (servers.cpu() - used) / (time.perf_counter() - began)
            processor[name] = Cell(100 * share)
            memory[name] = Cell(servers.memory()[1])
    yield Row("idle servers' memory, their own", "MB", memory)
    yield Row("idle servers' processor", "% of a core", processor)


def _first_send(servers: Servers) -> float:
    began = time.perf_counter()
    servers.start()
    try:
        while not _send(servers.port):
            if time.perf_counter() - began > PATIENCE:
                raise TimeoutError(f"the broker of {servers.name} takes no message")
            time.sleep(0.002)  # between tries; what is measured takes a hundred times as long
        return time.perf_counter() - began
    finally:
        servers.__exit__()


def _send(port: int) -> bool:
    """Try to store a message in a topic that is made by it."""
    header = SendRequestV2(
        producer_group="first",
        topic="first",
        default_topic="TBW102",
        default_topic_queue_nums=1,
        queue_id=0,
        sys_flag=0,
        born_timestamp=int(time.time() * 1000),
        flag=0,
        properties="",
    )
    frame = Command.request(int(RequestCode.SEND_MESSAGE_V2), 1, header, b"x" * 100).encode()
    try:
        with socket.create_connection(("127.0.0.1", port), 1.0) as wire:
            wire.sendall(frame)
            reader = FrameReader()
            while data := wire.recv(65536):
                for found in reader.feed(data):
                    return read_command(found).code == 0
    except OSError:
        return False
    return False
