"""The lane of a broker with access control: nothing passes that the gate would refuse.

Two brokers get the same reads, one with the lane and one without: the outcome must be the same.
"""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.broker.core.refusals import FAILED
from pocketmq.broker.serving.dispatch import Dispatcher
from pocketmq.net import Connection
from pocketmq.protocol import Command
from pocketmq.protocol.command_reader import cut_commands
from pocketmq.protocol.frame import FRAME_LIMIT, encode_frame
from pocketmq.protocol.requests.access import User
from pocketmq.protocol.signature import SigningUser
from pocketmq.protocol.signature import sign as sign_bound
from tests.access.attempts import send, sign
from tests.broker.running import client, running, send_fields
from tests.native.halves import Half, both, requests, split

core = pytest.importorskip("pocketmq_core")

GUARDED: dict[str, Any] = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": '{"username":"root","password":"root-secret"}',
}
SIGNERS = (
    ("root", "root-secret"),
    ("clerk", "clerk-secret"),  # may send to T alone
    ("clerk", "root-secret"),
    ("ghost", "ghost-secret"),
    None,
)


def as_signed(
    fields: dict[str, str], body: bytes, signer: tuple[str, str] | None, bound: int
) -> dict[str, str]:
    if signer is None:
        return fields
    if not bound:
        return sign(fields, body, *signer)
    signed = dict(fields)
    sign_bound(SigningUser(signer[0], signer[1].encode()), bound, signed, body)
    return signed


@st.composite
def signed_requests(draw: st.DrawFn) -> bytes:
    """A request that is signed, well or badly, and perhaps altered afterwards."""
    [request], _, _ = cut_commands(draw(requests().filter(is_request)), 0, FRAME_LIMIT)
    code, body = request.code, request.body
    bound = draw(st.sampled_from([0, code, code, 10, 310]))
    signer = draw(st.sampled_from([*SIGNERS[:2], *SIGNERS]))
    fields = as_signed(dict(request.ext), body, signer, bound)
    change = draw(st.sampled_from(["", "", "", "", "body", "topic", "name", "token", "none"]))
    if change == "body":
        body += b"!"
    elif change == "topic":
        fields["b"] = draw(st.sampled_from(["T", "Ü"]))
    elif change == "name":
        fields["AccessKey"] = "root"
    elif change == "token":
        fields["Signature"] = "x" * draw(st.sampled_from([0, 28, 1000]))
    elif change == "none":
        fields.pop("Signature", None)
    made = Command(code, request.opaque, request.flag, ext_fields=fields, body=body).encode()
    if draw(st.integers(0, 9)) == 0:
        values = st.sampled_from(["T", "Ü", "root", "clerk"])
        made = with_first(made, draw(st.sampled_from(["b", "AccessKey"])), draw(values))
    return made


def with_first(frame: bytes, key: str, value: str) -> bytes:
    """Return a frame with one more field before all others; it may come twice then."""
    end = 8 + int.from_bytes(frame[5:8], "big")
    field = f"{json.dumps(key)}:{json.dumps(value)},".encode()
    text = frame[8:end].replace(b'"extFields":{', b'"extFields":{' + field, 1)
    return encode_frame(0, text, frame[end:])


def is_request(frame: bytes) -> bool:
    """Whether a frame is one request with a JSON header."""
    commands, _, _ = cut_commands(frame, 0, FRAME_LIMIT)
    return len(commands) == 1 and not frame[4]


def signed_send(queue: int, signer: tuple[str, str] | None = SIGNERS[1], opaque: int = 1) -> bytes:
    fields = send_fields("T", "UNIQ_KEY\1K\2TAGS\1paid\2", e=str(queue))
    signed = as_signed(fields, b"hello", signer, 310)
    return Command(310, opaque, ext_fields=signed, body=b"hello").encode()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(signed_requests(), min_size=1, max_size=8),
    st.lists(st.integers(1, 1500), max_size=2),
    st.sampled_from(
        [
            GUARDED,
            GUARDED | {"require_signed_code": True},
            GUARDED | {"java_authorization": True},
            GUARDED | {"authentication_whitelist": "310"},
            GUARDED | {"authentication_enabled": False},
        ]
    ),
)
def test_any_signed_requests_have_the_same_outcome(
    frames: list[bytes], cuts: list[int], access: dict[str, Any]
) -> None:
    warm = [signed_send(queue) for queue in range(4)]
    reads = [*warm, *split(b"".join(frames), cuts)]
    asyncio.run(both(reads, ordered=len(frames) <= 8 and not cuts, access=access))


@pytest.mark.parametrize("key", ["b", "e", "AccessKey", "Signature", "i"])
async def test_a_field_that_comes_twice_is_the_same_for_gate_and_lane(key: str) -> None:
    known = as_signed(send_fields("Ü", "UNIQ_KEY\1K\2"), b"x", SIGNERS[0], 310)
    warm = [signed_send(0), Command(310, 1, ext_fields=known, body=b"x").encode()]
    for value in ("T", "Ü", "0", "1", "root", "clerk", "", "UNIQ_KEY\1other\2"):
        await both([*warm, with_first(signed_send(0), key, value)], access=GUARDED)


async def test_signed_sends_take_the_lane_up_to_the_first_that_may_not_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handed: list[int] = []
    received = Dispatcher.requests_received

    def spy(self: Dispatcher, connection: Connection, requests: list[Command]) -> None:
        handed.extend(request.opaque for request in requests)
        received(self, connection, requests)

    half = Half(lane=True, metrics=False, segment=1 << 20, access=GUARDED)
    await half.read(b"".join(map(signed_send, range(4))))
    monkeypatch.setattr(Dispatcher, "requests_received", spy)
    burst = [signed_send(number % 4, opaque=number) for number in range(40)]
    await half.read(b"".join(burst))
    assert (handed, half.state.traffic.messages_in) == ([], 44)
    forged = signed_send(0, ("clerk", "root-secret"), 50)
    await half.read(b"".join([*burst[:3], forged, *burst[3:5]]))
    assert (handed, half.state.traffic.messages_in) == ([50, 3, 4], 49)
    assert half.wire.written.count(b"check signature failed.") == 1
    await half.read(forged + burst[0])
    assert (handed[3:], half.state.traffic.messages_in) == ([50, 0], 50)
    half.state.users.update(User(username="clerk", user_status="Disable"), 1)
    await half.read(burst[0] + burst[1])
    assert (handed[5:], half.state.traffic.messages_in) == ([0, 1], 50)
    half.close()


async def test_a_gate_that_fails_lets_nothing_pass_and_ends_no_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever it raises: the request is left to the dispatcher, which answers and logs."""
    half = Half(lane=True, metrics=False, segment=1 << 20, access=GUARDED)
    await half.read(b"".join(map(signed_send, range(4))))
    clerk = half.state.users.entries["clerk"]
    broken = msgspec.structs.replace(clerk, password=5)  # as no request can make it
    half.state.users.entries["clerk"] = broken
    burst = [signed_send(0, SIGNERS[0]), signed_send(1), signed_send(2, SIGNERS[0])]
    await half.read(b"".join(burst))
    assert half.state.traffic.messages_in == 6
    assert [record.message.split(":")[0] for record in caplog.records] == ["request failed"]
    assert half.wire.written.count(FAILED.encode()) == 1
    half.close()


async def test_a_user_of_the_lane_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    trusted: list[Connection] = []
    half = Half(lane=True, metrics=False, segment=1 << 20, access=GUARDED)
    await half.read(signed_send(0))

    def spy(self: Connection) -> None:
        trusted.append(self)

    monkeypatch.setattr(Connection, "trust", spy)
    await half.read(signed_send(0) + signed_send(0))
    assert trusted == [half.connection] * 2
    half.close()


async def test_a_gate_is_never_passed_by() -> None:
    """Not even to a queue that an authenticated send has made known."""
    async with running(**GUARDED) as (broker, address), client(address) as peer:
        code, fields, body = send("orders")
        signed = sign(fields, body, "root", "root-secret")
        assert (await peer.ask(code, signed, body)).code == 0
        for _ in range(2):
            assert (await peer.ask(code, fields, body)).code == 16
        assert broker.state.traffic.messages_in == 1
