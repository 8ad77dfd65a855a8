"""A broker process on a slow disk: python -m tests.cluster.slow_broker DIR SYNC RATE [KEY=VALUE …]

Every sync takes SYNC seconds, and RATE bytes a second can be written (0: as many as there are).
"""

import asyncio
import sys
import time
from pathlib import Path

from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.store.disk import DiskFile


def slow_down(sync: float, rate: float) -> None:
    write, take_home = DiskFile.write, DiskFile.sync

    def slow_write(file: DiskFile, position: int, data: bytes) -> None:
        if rate:
            time.sleep(len(data) / rate)  # the fault itself: a device that takes its time
        write(file, position, data)

    def slow_sync(file: DiskFile) -> None:
        time.sleep(sync)  # the same
        take_home(file)

    DiskFile.write = slow_write  # type: ignore[method-assign, assignment]
    DiskFile.sync = slow_sync  # type: ignore[method-assign, assignment]


async def serve(directory: str, settings: dict[str, str]) -> None:
    here = {"listenPort": "0", "bindAddress": "127.0.0.1", "brokerIP1": "127.0.0.1"}
    broker = Broker(BrokerConfig.from_properties(here | settings), Path(directory))
    address = await broker.start()
    print(f"ready {address}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await broker.stop()


if __name__ == "__main__":
    slow_down(float(sys.argv[2]), float(sys.argv[3]))
    asyncio.run(serve(sys.argv[1], dict(pair.split("=", 1) for pair in sys.argv[4:])))
