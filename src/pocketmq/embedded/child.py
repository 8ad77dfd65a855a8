"""A broker's process within a cluster: `python -m pocketmq.embedded.child NAME`.

It imports its parts while the parent prepares, reads one order from its standard input, runs that
broker and stops gracefully on SIGTERM or when its standard input ends. The name is only shown in
the list of processes.

A child never outlives its parent, however that ends: on Linux the kernel sends the child a signal;
everywhere the child's standard input, which only the parent holds open, reaches its end.
"""

import os
import sys
from pathlib import Path

from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.embedded import broker_runner
from pocketmq.embedded.own_process import die_with_parent, name_process
from pocketmq.embedded.server_logging import StderrLines, set_up_logging
from pocketmq.embedded.stopping import serve_until_asked
from pocketmq.errors import CannotStart
from pocketmq.net import loops

_STDIN, _STDOUT = 0, 1


def run() -> int:
    """Take the order, carry it out and return the exit code."""
    die_with_parent()
    line = _first_line()
    if not line:
        return 0  # the parent has changed its mind, or has ended
    order = broker_runner.read_order(line)
    name_process(order.log.process)
    log = set_up_logging(order.log)
    try:
        loops.run(_serve(order, log))
    except CannotStart as problem:
        _report(broker_runner.BrokerRefused(problem.reason))
        return 2
    return 0


async def _serve(order: broker_runner.BrokerOrder, log: StderrLines) -> None:
    config = BrokerConfig.from_properties(order.properties)
    data = None if order.data is None else Path(order.data)
    given, any_port = order.given, order.any_port
    broker = Broker(
        config, data, order.nameservers, own_process=True, given=given, any_port=any_port
    )

    async def start() -> str:
        with broker_runner.raising_cannot_start(config.broker_name):
            await broker.start()
        return str(broker.bound)

    def announce(address: str) -> None:
        log.started()
        _report(broker_runner.BrokerReady(address))

    await serve_until_asked(
        start,
        broker.stop,
        announce=announce,
        force=lambda: os._exit(1),
        lifeline=_STDIN,
    )


def _first_line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(_STDIN, 65536)
        if not piece:
            return b""
        line += piece
    return line


def _report(report: broker_runner.BrokerReady | broker_runner.BrokerRefused) -> None:
    os.write(_STDOUT, broker_runner.write_line(report))


if __name__ == "__main__":
    sys.exit(run())
