"""Virtual time is quick, and in order."""

import asyncio
import time

from tests.virtual.loop import VirtualLoop, run_virtually


def test_a_day_passes_at_once() -> None:
    async def story() -> float:
        await asyncio.sleep(86400)
        return asyncio.get_running_loop().time()

    started = time.perf_counter()
    assert run_virtually(story()) == 86400
    assert time.perf_counter() - started < 30


def test_what_is_under_way_comes_before_time_passes() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    async def story() -> list[float]:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        loop = asyncio.get_running_loop()
        times = []
        for _ in range(200):
            writer.write(b"x")
            async with asyncio.timeout(1):
                await reader.readexactly(1)
            times.append(loop.time())
        writer.close()
        await writer.wait_closed()
        server.close()
        await asyncio.sleep(1)
        return times

    assert run_virtually(story()) == [0.0] * 200


def test_time_waits_for_threads() -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        async with asyncio.timeout(1):
            await asyncio.to_thread(time.sleep, 0.05)
        return loop.time()

    assert run_virtually(story()) == 0.0
