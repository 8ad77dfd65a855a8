"""Where to listen and what to tell clients. Which ports brokers get, and keep."""

import errno
import logging
import socket
import sys
import threading
from pathlib import Path

import pytest

from pocketmq.embedded import listening
from pocketmq.errors import CannotStart, StoreError
from tests.ports import free_port


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::", "192.0.2.7"])
async def test_an_address_is_itself_and_costs_no_thread(host: str) -> None:
    threads = set(threading.enumerate())
    assert await listening.resolved(host, "the part") == host
    assert set(threading.enumerate()) <= threads


async def test_a_name_becomes_an_ipv4_address_if_it_has_one() -> None:
    assert await listening.resolved("localhost", "the part") == "127.0.0.1"


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 70 + ".invalid", "a..b", "\0", ""])
async def test_a_name_that_does_not_resolve_is_told(host: str) -> None:
    with pytest.raises(CannotStart) as caught:
        await listening.resolved(host, "the part")
    assert caught.value.part == "the part"
    assert repr(host) in caught.value.reason


def test_every_interface_is_told_as_one_that_works() -> None:
    assert (listening.own_host("0.0.0.0"), listening.own_host("::")) == ("127.0.0.1", "::1")
    assert listening.advertised_host("0.0.0.0") not in {"", "0.0.0.0"}
    for host in ("127.0.0.1", "192.0.2.7"):
        assert (listening.own_host(host), listening.advertised_host(host)) == (host, host)


@pytest.mark.parametrize(
    ("host", "warnings"),
    [("127.0.0.1", 0), ("127.9.9.9", 0), ("::1", 0), ("0.0.0.0", 1), ("::", 1)],
)
def test_only_what_others_can_reach_is_warned_about(
    host: str, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        listening.warn_if_open(host)
    assert len(caplog.records) == warnings


def test_brokers_keep_the_distance_java_brokers_need() -> None:
    assert [listening.default_port(10911, number) for number in range(3)] == [10911, 10921, 10931]
    assert [listening.default_port(0, number) for number in range(3)] == [0, 0, 0]


def test_a_port_with_a_server_is_not_free() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        assert not listening.is_free("127.0.0.1", port)
    assert listening.is_free("127.0.0.1", port)


def test_ports_are_read_back(tmp_path: Path) -> None:
    listening.write_ports(tmp_path, {"broker-0": 10911, "broker-1": 43210})
    assert listening.read_ports(tmp_path) == {"broker-0": 10911, "broker-1": 43210}


def test_without_a_directory_nothing_is_kept(tmp_path: Path) -> None:
    listening.write_ports(None, {"broker-0": 10911})
    assert listening.read_ports(None) == {}
    assert listening.read_ports(tmp_path) == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"broker-0": "x"}', b"\xff"])
def test_a_broken_file_is_passed_over_and_told(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / listening.PORTS_FILE).write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert listening.read_ports(tmp_path) == {}
    assert str(tmp_path / listening.PORTS_FILE) in caplog.text


def test_a_directory_that_takes_no_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot write"):
        listening.write_ports(tmp_path / "file", {})


@pytest.mark.skipif(sys.platform != "linux", reason="ports are held on Linux alone, see `HeldPort`")
def test_a_held_port_is_nobodys_but_a_servers_that_is_told_it() -> None:
    held, port = listening.HeldPort(), free_port()
    held.hold("127.0.0.1", port)
    held.hold("127.0.0.1", port)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED
    with socket.create_server(("127.0.0.1", port)):
        held.let_go()
        held.let_go()
        socket.create_connection(("127.0.0.1", port)).close()
        held.hold("127.0.0.1", port)  # in use: not held
    assert listening.is_free("127.0.0.1", port)
