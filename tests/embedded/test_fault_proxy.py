"""The proxy that breaks the network: what it accepts, it also closes."""

import asyncio
import gc
import socket
from contextlib import suppress

import pytest

from pocketmq.embedded.fault_proxy import FaultProxy


@pytest.mark.parametrize("turns", range(5))
async def test_a_socket_that_comes_while_it_closes_is_closed(turns: int) -> None:
    proxy = FaultProxy("127.0.0.1:9")
    proxy.accept()
    await asyncio.sleep(0)
    host, port = proxy.address.split(":")
    with socket.create_connection((host, int(port))) as client:
        for _ in range(turns):
            await asyncio.sleep(0)
        await proxy.close()
        client.settimeout(10)
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
    del proxy
    gc.collect()  # a socket that was lost would warn, which is an error in tests
