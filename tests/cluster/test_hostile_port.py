"""Nothing that can be written to an open port takes a part down or harms another client."""

import random
import socket

import pytest

from pocketmq.embedded import Cluster
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command, RequestCode
from tests.cluster.raw import RawClient, everything_in, pull, send_header


def frames() -> list[bytes]:
    """Return sound frames to be damaged: every code, with and without fields and bodies."""
    queue = MessageQueue("victim", "broker-0", 0)
    some = [send_header(queue, "k"), None]
    return [
        Command.request(code, number, header, body).encode()
        for number, code in enumerate(RequestCode)
        for header in some
        for body in (b"", b"{}", b'{"a":[1,{"b":null}]}', b"\x00" * 40)
    ]


def damaged(chance: random.Random, frame: bytes) -> bytes:
    data = bytearray(frame)
    for _ in range(chance.choice((1, 1, 2, 8))):
        place = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data[place] = chance.randrange(256)
            case 1:
                del data[place]
            case 2:
                data[place:place] = chance.randbytes(chance.randrange(1, 9))
            case _:
                data = data[: place + 1]
        if not data:
            data = bytearray(b"\x00")
    return bytes(data)


def throw(address: str, data: bytes) -> None:
    """Write bytes, look at what comes back for a moment, hang up."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 30) as peer:
        try:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            peer.settimeout(5)
            while peer.recv(1 << 16):
                pass
        except OSError:
            pass


@pytest.mark.parametrize("seed", range(3))
def test_damaged_frames_and_noise_harm_nobody(seed: int) -> None:
    chance = random.Random(seed)
    whole = frames()
    with Cluster(in_process=False) as cluster:
        cluster.create_topic("victim", 1)
        cluster.create_topic("witness", 1)
        broker = cluster.brokers["broker-0"]
        with RawClient(broker.address) as witness:
            queue = MessageQueue("witness", "broker-0", 0)
            for turn in range(60):
                for address in (broker.address, cluster.address):
                    noise = [damaged(chance, chance.choice(whole)) for _ in range(20)]
                    throw(address, chance.randbytes(chance.randrange(1, 2000)))
                    throw(address, noise[0])
                    throw(address, b"".join(noise))
                header = send_header(queue, f"w{turn}")
                answer = witness.call(RequestCode.SEND_MESSAGE_V2, header, b"still here")
                assert answer.code == 0
            assert len(list(everything_in(witness, queue))) == 60
        assert cluster.brokers["broker-0"].pid == broker.pid


def test_sound_frames_of_every_code_get_an_answer_or_a_close_never_a_crash() -> None:
    with Cluster(in_process=False) as cluster:
        broker = cluster.brokers["broker-0"]
        for address in (broker.address, cluster.address):
            for frame in frames():
                throw(address, frame)
        with RawClient(broker.address) as client:
            queue = MessageQueue("after", "broker-0", 0)
            answer = client.call(RequestCode.SEND_MESSAGE_V2, send_header(queue, "k"), b"x")
            assert answer.code == 0
            assert pull(client, queue, 0).code == 0
        assert cluster.brokers["broker-0"].pid == broker.pid
