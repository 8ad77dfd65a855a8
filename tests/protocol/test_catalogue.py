"""The catalogue of requests is whole, and captured Java frames read through it from end to end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pocketmq.errors import UnknownRequestCode
from pocketmq.protocol.bodies.by_code import BodyForm
from pocketmq.protocol.catalogue import RequestKind, request_kind
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command, read_command
from pocketmq.protocol.frame import Frame
from pocketmq.protocol.json_values import decode_body, encode_body

ROOT = Path(__file__).parents[2]
CAPTURES = [
    json.loads(line)
    for line in (ROOT / "tests" / "vectors" / "java-frames.jsonl").read_text().splitlines()
]


def captured_command(sample: dict[str, object]) -> Command:
    header = str(sample["header"])
    binary = sample["serialize"] == "ROCKETMQ"
    raw = bytes.fromhex(header) if binary else header.encode()
    body = bytes.fromhex(str(sample.get("bodyHex", ""))) or str(sample.get("bodyText", "")).encode()
    return read_command(Frame(int(binary), raw, body))


@pytest.mark.parametrize("code", RequestCode)
def test_every_code_has_an_entry(code: RequestCode) -> None:
    kind = request_kind(code)
    assert kind.code is code
    assert isinstance(kind, RequestKind)


def test_a_code_nobody_knows_is_a_typed_error() -> None:
    with pytest.raises(UnknownRequestCode, match="request type 31415 not supported"):
        request_kind(31415)


@pytest.mark.parametrize("number", range(len(CAPTURES)))
def test_a_captured_frame_reads_as_what_the_catalogue_says(number: int) -> None:
    """Header and body of real Java traffic become typed values, and those become the same again."""
    sample = CAPTURES[number]
    command = captured_command(sample)
    kind = request_kind(sample["reqcode"])
    response = sample["kind"] == "resp"
    header = kind.response_header if response else kind.request_header
    body = kind.response_body if response else kind.request_body
    if header is not None and (command.code == 0 or not response):
        typed = command.header(header)
        assert header.from_ext(typed.to_ext()) == typed
    if command.body and sample["bodyComplete"] and not isinstance(body, BodyForm):
        value: object = decode_body(command.body, body)
        assert decode_body(encode_body(value), body) == value


def test_the_page_of_requests_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "requests_page.py"), "--check"], check=False
    )
    assert done.returncode == 0, "run: python tools/requests_page.py"
