"""What one frame costs: a send request, encoded and decoded, against plain `json` and `struct`.

python -m benchmarks.frames
"""

import json
import struct
import timeit
from collections.abc import Callable
from time import process_time

from benchmarks._paths import note
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader, SerializeType
from pocketmq.protocol.requests.sending import SendRequestV2

FIELDS = {
    "a": "shop",
    "b": "orders",
    "c": "TBW102",
    "d": "4",
    "e": "3",
    "f": "0",
    "g": "1794707172145",
    "h": "0",
    "i": "KEYS\1A17\2UNIQ_KEY\1FD000000000000000000000000000000230CE5FFD2B27487\2TAGS\1paid\2",
    "j": "0",
    "k": "false",
    "m": "false",
    "n": "broker-a",
}
BODY = b"x" * 1024
ROUNDS = 7
CALLS = 20_000


def microseconds(call: Callable[[], object]) -> float:
    """Time one call: the best of several rounds, so that other work on the machine counts least."""
    rounds = timeit.repeat(call, timer=process_time, number=CALLS, repeat=ROUNDS)
    return min(rounds) / CALLS * 1e6


def baseline_encode() -> bytes:
    header = json.dumps(
        {
            "code": 310,
            "extFields": FIELDS,
            "flag": 0,
            "language": "PYTHON",
            "opaque": 1,
            "serializeTypeCurrentRPC": "JSON",
            "version": 479,
        },
        separators=(",", ":"),
    ).encode()
    return struct.pack(">II", 4 + len(header) + len(BODY), len(header)) + header + BODY


def baseline_decode(data: bytes) -> tuple[int, str, int, bytes]:
    length, word = struct.unpack_from(">II", data)
    end = 8 + (word & 0xFFFFFF)
    header = json.loads(data[8:end])
    fields = header["extFields"]
    return header["code"], fields["b"], int(fields["e"]), data[end : 4 + length]


def main() -> None:
    request = Command.request(310, 1, FIELDS, BODY)
    binary = Command.request(310, 1, FIELDS, BODY, serialize=SerializeType.ROCKETMQ)
    typed = read_command(FrameReader().feed(request.encode())[0])
    header = typed.header(SendRequestV2)
    wire = {"JSON": request.encode(), "binary": binary.encode()}
    reader = FrameReader()
    (frame,) = reader.feed(wire["JSON"])
    ten = wire["JSON"] * 10

    def read(data: bytes) -> Command:
        return read_command(reader.feed(data)[0])

    plain_encode = microseconds(baseline_encode)
    data = baseline_encode()
    plain_decode = microseconds(lambda: baseline_decode(data))
    rows: list[tuple[str, float, float]] = [
        ("encode, json + struct", plain_encode, plain_encode),
        ("encode, JSON, fields given", microseconds(request.encode), plain_encode),
        (
            "encode, JSON, from typed header",
            microseconds(lambda: Command.request(310, 1, header, BODY).encode()),
            plain_encode,
        ),
        ("encode, binary, fields given", microseconds(binary.encode), plain_encode),
        ("decode, json + struct", plain_decode, plain_decode),
        ("decode, JSON, frame only", microseconds(lambda: reader.feed(wire["JSON"])), plain_decode),
        ("decode, JSON, ten frames", microseconds(lambda: reader.feed(ten)) / 10, plain_decode),
        ("decode, JSON, fields unread", microseconds(lambda: read(wire["JSON"])), plain_decode),
        (
            "decode, JSON, typed header, no frame",
            microseconds(lambda: read_command(frame).header(SendRequestV2)),
            plain_decode,
        ),
        (
            "decode, JSON, typed header",
            microseconds(lambda: read(wire["JSON"]).header(SendRequestV2)),
            plain_decode,
        ),
        (
            "decode, JSON, all fields",
            microseconds(lambda: read(wire["JSON"]).ext),
            plain_decode,
        ),
        ("decode, binary, all fields", microseconds(lambda: read(wire["binary"])), plain_decode),
        (
            "decode, binary, typed header",
            microseconds(lambda: read(wire["binary"]).header(SendRequestV2)),
            plain_decode,
        ),
    ]
    print(f"send request, {len(FIELDS)} fields, {len(BODY)} bytes of body")
    print(f"{'':38}{'µs':>8}{'× json':>9}")
    for name, cost, baseline in rows:
        print(f"{name:38}{cost:8.2f}{cost / baseline:9.2f}")
        if "json + struct" not in name:
            note(name, cost)


if __name__ == "__main__":
    main()
