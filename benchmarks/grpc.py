"""RocketMQ 5's gRPC service: ours beside Apache's proxy 5.5.0, with Apache's Python client.

Both proxies are in front of one broker of ours, and take turns; the client has a process of its
own. CPU is the processor time of the proxy's process for each message. A start ends when a client
is connected: our port listens earlier, and loads protobuf's library for that client. The second
column is our proxy without the native core, where grpcio serves.

python -m benchmarks.grpc
"""

import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import grpc

from benchmarks import _grpc_proxies as proxies
from benchmarks.java.processes import PATIENCE, Child
from benchmarks.java.servers import OurServers

ROUNDS = 3
COUNTS = {"send": 1500, "burst": 4000, "receive": 1500}
TITLES = {"send": "send, one at a time", "burst": "send, 64 in flight", "receive": "receive, ack"}
WARM = 500

Start = Callable[[str], proxies.Proxy]
"""Starts a proxy for the cluster of a name server."""


class Measured:
    """One proxy under load: the best rate and the least CPU of each order."""

    def __init__(self, title: str, start: Start, namesrv: str) -> None:
        self.title = title
        began = time.monotonic()
        self.proxy = start(namesrv)
        with grpc.insecure_channel(self.proxy.address) as channel:
            grpc.channel_ready_future(channel).result(PATIENCE)
        self.start = time.monotonic() - began
        self.rates: dict[str, float] = {}
        self.costs: dict[str, float] = {}
        self._client: Child | None = None

    def join(self, topic: str) -> None:
        """Start the client, and let it and the proxy become warm."""
        words = [self.proxy.address, topic, f"{topic}-group"]
        command = [sys.executable, "-m", "benchmarks._grpc_client", *words]
        self._client = Child(command, Path.cwd())
        self._client.wait_for("ready")
        for order in COUNTS:
            self._ask(order, WARM)
        self._ask("receive", WARM)

    def measure(self) -> None:
        for order, count in COUNTS.items():
            used = self.proxy.child.cpu()
            rate = count / self._ask(order, count)
            cost = (self.proxy.child.cpu() - used) / count * 1e6
            self.rates[order] = max(rate, self.rates.get(order, 0.0))
            self.costs[order] = min(cost, self.costs.get(order, cost))
        self._ask("receive", COUNTS["send"] + COUNTS["burst"] - COUNTS["receive"])

    def _ask(self, order: str, count: int) -> float:
        assert self._client is not None
        self._client.say(f"{order} {count}")
        return float(self._client.wait_for("done")[0])

    def stop(self) -> None:
        if self._client is not None:
            self._client.stop()
        self.proxy.child.stop()


def show(found: list[Measured]) -> None:
    others = found[1:]

    def row(title: str, unit: str, values: list[float], digits: int) -> None:
        ratios = "".join(f"{values[0] / each:12.2f}" for each in values[1:])
        shown = "".join(f"{each:16,.{digits}f}" for each in values)
        print(f"{title:<24}{unit:>6}{shown}{ratios}", flush=True)

    heads = "".join(f"{each.title:>16}" for each in found)
    ratios = "".join(f"{'× ' + each.title.split()[-1]:>12}" for each in others)
    print(f"{'':30}{heads}{ratios}")
    row("start", "s", [each.start for each in found], 2)
    for order, title in TITLES.items():
        row(title, "1/s", [each.rates[order] for each in found], 0)
        row("", "CPU µs", [each.costs[order] for each in found], 0)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        home = Path(directory)
        starts: list[tuple[str, Start]] = [
            ("ours", proxies.ours),
            ("by grpcio", lambda namesrv: proxies.ours(namesrv, pure=True)),
        ]
        try:
            jars = proxies.jars()
            starts.append(("Apache's", lambda namesrv: proxies.apaches(namesrv, jars, home)))
        except proxies.NoProxyError as missing:
            print(f"Apache's proxy is not measured: {missing}")
        servers = stack.enter_context(OurServers(home))
        found = []
        for number, (title, start) in enumerate(starts):
            servers.create_topic(f"load-{number}")
            each = Measured(title, start, servers.namesrv)
            stack.callback(each.stop)
            each.join(f"load-{number}")
            found.append(each)
        for _ in range(ROUNDS):
            for each in found:
                each.measure()
        show(found)


if __name__ == "__main__":
    main()
