"""Every number that Java gives a request, a response or a version is the same here."""

import json
from pathlib import Path

import pytest

from pocketmq.errors import ResponseCode
from pocketmq.protocol import RequestCode
from pocketmq.protocol.peers import VersionGate, version_name, version_number

RELEASES = ("5.5.0", "4.9.7")
# Never on the wire: a Java client's own words for what it met while sending.
INSIDE_A_CLIENT = range(-1006, -999)
# 5.x gave these numbers to something else.
REPURPOSED = {
    "UPDATE_AND_CREATE_ACL_CONFIG_FAILED",
    "DELETE_ACL_CONFIG_FAILED",
    "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED",
}


def java(release: str, table: str) -> dict[str, int]:
    path = Path(__file__).parents[1] / "vectors" / f"java-codes-{release}.json"
    numbers: dict[str, int] = json.loads(path.read_text())[table]
    return numbers


@pytest.mark.parametrize("release", RELEASES)
def test_request_codes_have_javas_names_and_numbers(release: str) -> None:
    ours = {code.name: code.value for code in RequestCode}
    assert java(release, "RequestCode").items() <= ours.items()


@pytest.mark.parametrize("release", RELEASES)
def test_response_codes_have_javas_names_and_numbers(release: str) -> None:
    ours = {code.name: code.value for code in ResponseCode}
    theirs = {
        name: number
        for name, number in java(release, "ResponseCode").items()
        if number not in INSIDE_A_CLIENT and name not in REPURPOSED
    }
    assert theirs.items() <= ours.items()


def test_no_code_is_invented() -> None:
    requests = {number for release in RELEASES for number in java(release, "RequestCode").values()}
    responses = {n for release in RELEASES for n in java(release, "ResponseCode").values()}
    assert {code.value for code in RequestCode} == requests
    assert {code.value for code in ResponseCode} <= responses


@pytest.mark.parametrize("release", RELEASES)
def test_versions_from_4_0_0_on_have_javas_names(release: str) -> None:
    versions = java(release, "Version")
    first = versions["V4_0_0_SNAPSHOT"]
    assert {name: n for name, n in versions.items() if n >= first} == {
        version_name(n): n for n in range(first, max(versions.values()) + 1)
    }
    assert version_number(4, 9, 7) == versions["V4_9_7"]


def test_peers_change_their_ways_at_javas_versions() -> None:
    versions = java("5.5.0", "Version")
    assert {gate.name: gate.value for gate in VersionGate} == {
        "RESET_OFFSET_PUSH": versions["V3_0_7_SNAPSHOT"],
        "REGISTER_BODY": versions["V3_0_11"],
        "RELAYED_CALLS": versions["V3_1_8_SNAPSHOT"],
        "MAX_RECONSUME_TIMES": versions["V3_4_9"],
        "SQL92": versions["V4_1_0_SNAPSHOT"],
        "UNIQUE_KEY_QUERY_UNSIGNED": versions["V4_9_3"],
        "STANDARD_JSON": versions["V4_9_4"],
        "TOPIC_QUEUE_MAPPING": versions["V5_0_0"],
        "EXACT_TIMES": versions["V5_3_0"],
        "GO_AWAY": versions["V5_3_1"],
    }
