"""Where to listen and what to tell clients."""

import logging
import threading

import pytest
from pocketmq.embedded.listening import advertised_host, own_host, resolved, warn_if_open

from pocketmq.errors import CannotStart


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::", "192.0.2.7"])
async def test_an_address_is_itself_and_costs_no_thread(host: str) -> None:
    threads = threading.active_count()
    assert await resolved(host, "the part") == host
    assert threading.active_count() == threads


async def test_a_name_becomes_an_ipv4_address_if_it_has_one() -> None:
    assert await resolved("localhost", "the part") == "127.0.0.1"


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 70 + ".invalid", "a..b", "\0", ""])
async def test_a_name_that_does_not_resolve_is_told(host: str) -> None:
    with pytest.raises(CannotStart) as caught:
        await resolved(host, "the part")
    assert caught.value.part == "the part"
    assert repr(host) in caught.value.reason


def test_every_interface_is_told_as_one_that_works() -> None:
    assert (own_host("0.0.0.0"), own_host("::")) == ("127.0.0.1", "::1")
    assert advertised_host("0.0.0.0") not in {"", "0.0.0.0"}
    for host in ("127.0.0.1", "192.0.2.7"):
        assert (own_host(host), advertised_host(host)) == (host, host)


@pytest.mark.parametrize(
    ("host", "warnings"),
    [("127.0.0.1", 0), ("127.9.9.9", 0), ("::1", 0), ("0.0.0.0", 1), ("::", 1)],
)
def test_only_what_others_can_reach_is_warned_about(
    host: str, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        warn_if_open(host)
    assert len(caplog.records) == warnings
