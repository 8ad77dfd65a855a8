"""How long it takes from the start of the processes to the first message that is stored."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.java.measures import Cell, Row, Scale
from benchmarks.java.processes import PATIENCE
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
    yield Row("start to first message stored", "s", cells, "< 1/20", 1 / 20, less=True)


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
