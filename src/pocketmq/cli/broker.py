"""`pocketmq broker`: a broker alone, on name servers of ours or Java's."""

from collections.abc import Collection
from pathlib import Path

import click
import msgspec

from pocketmq.broker.config import BrokerConfig
from pocketmq.cli import server_options as servers
from pocketmq.cli.commands import HELP
from pocketmq.embedded.server_logging import StderrLines, set_up_logging
from pocketmq.embedded.settings import broker_properties, read_config_file
from pocketmq.net import Address, loops, parse_addresses


@click.command("broker", context_settings=HELP)
@click.option(
    "-n",
    "--namesrv",
    envvar="NAMESRV_ADDR",
    metavar="HOST:PORT[;…]",
    help="Name servers to register with.  [default: $NAMESRV_ADDR]",
)
@click.option("--name", help="Name of the broker, unique in its cluster.")
@click.option("--cluster", help="Name of the cluster.  [default: DefaultCluster]")
@servers.listening_options(10911, settable=True)
@servers.ADVERTISE
@click.option(
    "-c",
    "--config",
    "file",
    type=click.Path(path_type=Path),
    help="Settings file like Java's broker.conf; put secrets here.",
)
@servers.server_options(brokers=True)
def command(
    *,
    run: servers.ServerRun,
    namesrv: str | None,
    name: str | None,
    cluster: str | None,
    host: str | None,
    port: int | None,
    advertise: str,
    file: Path | None,
) -> None:
    """Run a broker alone, also beside Java brokers and on Java name servers.

    Prints `ready namesrv=… brokers=NAME@HOST:PORT` once it serves; everything else goes to stderr.
    """
    log = set_up_logging(run.log)
    options = {
        "namesrvAddr": namesrv,
        "brokerName": name,
        "brokerClusterName": cluster,
        "bindAddress": host,
        "listenPort": None if port is None else str(port),
        "brokerIP1": advertise or None,
    }
    given = run.settings | {key: value for key, value in options.items() if value is not None}
    properties = broker_properties(read_config_file(file), given)
    if not properties.get("namesrvAddr"):
        raise click.UsageError("no name server; give --namesrv HOST:PORT")
    config = BrokerConfig.from_properties(properties)
    loops.run(_serve(config, run, log, given=given.keys()))


async def _serve(
    config: BrokerConfig, run: servers.ServerRun, log: StderrLines, *, given: Collection[str]
) -> None:
    from pocketmq.broker.broker import Broker
    from pocketmq.embedded.broker_runner import raising_cannot_start
    from pocketmq.embedded.listening import advertised_host, resolved, warn_if_open
    from pocketmq.embedded.stopping import serve_until_asked

    part = config.broker_name
    nameservers = [str(address) for address in parse_addresses(config.namesrv_addr)]
    listening = await resolved(config.bind_address, part)
    told = config.broker_ip1 or advertised_host(listening)
    config = msgspec.structs.replace(config, bind_address=listening, broker_ip1=told)
    broker = Broker(config, run.data, nameservers, own_process=True, given=given)

    async def start() -> str:
        with raising_cannot_start(part):
            address = await broker.start()
        warn_if_open(listening, guarded=config.guarded)
        return str(Address(told, config.advertised_port or address.port))

    await serve_until_asked(
        start,
        broker.stop,
        announce=lambda address: servers.announce_ready(
            f"namesrv={';'.join(nameservers)} brokers={part}@{address}", log, chosen=run.chosen
        ),
        force=servers.exit_at_once,
    )
