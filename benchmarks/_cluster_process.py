"""One process for client benchmarks: a name server and a broker with topics of eight queues.

python -m benchmarks._cluster_process [key=value …]
"""

import asyncio
import signal
import sys

from pocketmq.embedded.aio import Cluster


async def serve(settings: dict[str, str]) -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    async with Cluster(config=settings) as cluster:
        for topic in ("orders", "live"):
            await cluster.create_topic(topic, 8)
        (broker,) = cluster.brokers.values()
        print("ready", cluster.address, broker.address, flush=True)
        await told.wait()


if __name__ == "__main__":
    asyncio.run(serve(dict(pair.split("=", 1) for pair in sys.argv[1:])))
