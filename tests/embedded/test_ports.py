"""Which ports brokers get, and keep."""

import logging
import socket
from pathlib import Path

import pytest
from pocketmq.embedded.listening import (
    PORTS_FILE,
    default_port,
    is_free,
    preferred_port,
    read_ports,
    write_ports,
)

from pocketmq.errors import StoreError


def test_brokers_keep_the_distance_java_brokers_need() -> None:
    assert [default_port(10911, number) for number in range(3)] == [10911, 10921, 10931]
    assert [default_port(0, number) for number in range(3)] == [0, 0, 0]


def test_a_port_with_a_server_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free("127.0.0.1", port)
        assert preferred_port("127.0.0.1", port, "broker-0") == 0
    assert is_free("127.0.0.1", port)
    assert preferred_port("127.0.0.1", port, "broker-0") == port


def test_any_port_needs_no_look() -> None:
    assert preferred_port("127.0.0.1", 0, "broker-0") == 0


def test_ports_are_read_back(tmp_path: Path) -> None:
    write_ports(tmp_path, {"broker-0": 10911, "broker-1": 43210})
    assert read_ports(tmp_path) == {"broker-0": 10911, "broker-1": 43210}


def test_without_a_directory_nothing_is_kept(tmp_path: Path) -> None:
    write_ports(None, {"broker-0": 10911})
    assert read_ports(None) == {}
    assert read_ports(tmp_path) == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"broker-0": "x"}', b"\xff"])
def test_a_broken_file_is_passed_over_and_told(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / PORTS_FILE).write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert read_ports(tmp_path) == {}
    assert str(tmp_path / PORTS_FILE) in caplog.text


def test_a_directory_that_takes_no_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot write"):
        write_ports(tmp_path / "file", {})
