"""The catalogue of requests is whole, and captured Java frames read through it from end to end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pocketmq.errors import UnknownRequestCode
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.catalogue import REQUESTS, request_of
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import Frame
from pocketmq.protocol.request import NoHeader, RequestRight, request
from tests.protocol.foreign import FOREIGN

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
    assert request_of(code).code is code


def test_only_what_is_foreign_has_its_types_in_the_tests() -> None:
    bare = {code for code, row in REQUESTS.items() if row.foreign}
    assert FOREIGN.keys() <= bare
    assert not any(row.foreign for row in FOREIGN.values())
    assert not any(REQUESTS[code].served_by for code in bare - FOREIGN.keys())


def test_a_right_on_a_field_that_the_header_lacks_is_refused() -> None:
    row = REQUESTS[RequestCode.GET_TOPIC_CONFIG]
    right = RequestRight.to("Get", topik="Topic")
    with pytest.raises(TypeError, match=f"{row.header.__name__} has no field topik"):
        request(row.code, row.header, row.answer, right=right)
    with pytest.raises(TypeError, match="on_cluster"):
        RequestRight.to("Get")


def test_a_code_nobody_knows_is_a_typed_error() -> None:
    with pytest.raises(UnknownRequestCode, match="request type 31415 not supported"):
        request_of(31415)


@pytest.mark.parametrize("number", range(len(CAPTURES)))
def test_a_captured_frame_reads_as_what_the_catalogue_says(number: int) -> None:
    """Header and body of real Java traffic become typed values, and those become the same again."""
    sample = CAPTURES[number]
    command = captured_command(sample)
    row = request_of(sample["reqcode"])
    response = sample["kind"] == "resp"
    header = row.answer if response else row.header
    form = row.result if response else row.body
    if header is not NoHeader and (command.code == 0 or not response):
        typed = command.header(header)
        assert header.from_ext(typed.to_ext()) == typed
    if command.body and sample["bodyComplete"]:
        value = form.decode(command.body)
        assert form.decode(form.encode(value)) == value


def test_the_page_of_requests_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "requests_page.py"), "--check"], check=False
    )
    assert done.returncode == 0, "run: python tools/requests_page.py"
