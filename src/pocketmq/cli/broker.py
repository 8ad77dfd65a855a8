"""`pocketmq broker`: a broker alone, on name servers of ours or Java's."""

import asyncio
from collections.abc import Collection
from pathlib import Path

import click
import msgspec

from pocketmq.broker.config import BrokerConfig
from pocketmq.cli.server_options import (
    chosen_data,
    chosen_log,
    chosen_metrics,
    chosen_tls,
    data_options,
    end_at_once,
    listening_options,
    logging_options,
    metrics_option,
    read_pairs,
    say_ready,
    settings_option,
    tls_options,
)
from pocketmq.embedded.early_stop import remember_stop_signals
from pocketmq.embedded.server_logging import StderrLines, set_up_logging
from pocketmq.embedded.settings import broker_properties, read_config_file


@click.command("broker", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-n",
    "--namesrv",
    envvar="NAMESRV_ADDR",
    metavar="HOST:PORT[;…]",
    help="Name servers to register with; also from NAMESRV_ADDR.",
)
@click.option("--name", help="The broker's name, one of its own in its cluster.")
@click.option("--cluster", help="The cluster's name, usually DefaultCluster.")
@listening_options(None, "the broker")
@click.option("--advertise", metavar="HOST", help="Host to tell clients, if another.")
@click.option(
    "-c",
    "--config",
    "file",
    type=click.Path(path_type=Path),
    help="Settings as Java's broker.conf.",
)
@data_options
@tls_options
@metrics_option
@settings_option
@logging_options
def command(
    *,
    namesrv: str | None,
    name: str | None,
    cluster: str | None,
    host: str | None,
    port: int | None,
    advertise: str | None,
    file: Path | None,
    data: str | None,
    memory: bool,
    tls_cert: str | None,
    tls_key: str | None,
    tls_mode: str | None,
    metrics_port: int | None,
    pairs: tuple[str, ...],
    log_level: str,
    log_json: bool,
) -> None:
    """Run a broker alone, also beside Java brokers and on Java name servers.

    Prints `ready namesrv=… brokers=NAME@HOST:PORT` once it serves; everything else goes to stderr.
    """
    remember_stop_signals()
    log = set_up_logging(chosen_log(log_level, log_json))
    options = {
        "namesrvAddr": namesrv,
        "brokerName": name,
        "brokerClusterName": cluster,
        "bindAddress": host,
        "listenPort": None if port is None else str(port),
        "brokerIP1": advertise,
    }
    given = {key: value for key, value in options.items() if value is not None}
    given |= chosen_metrics(metrics_port)
    given = read_pairs(pairs) | chosen_tls(tls_cert, tls_key, tls_mode) | given
    properties = broker_properties(read_config_file(file), given)
    if not properties.get("namesrvAddr"):
        raise click.UsageError("name servers are missing; give --namesrv HOST:PORT")
    config = BrokerConfig.from_properties(properties)
    place, kept = chosen_data(data, memory), memory or data is not None
    asyncio.run(_serve(config, place, log, kept=kept, given=given.keys()))


async def _serve(
    config: BrokerConfig,
    data: Path | None,
    log: StderrLines,
    *,
    kept: bool,
    given: Collection[str],
) -> None:
    from pocketmq.broker.broker import Broker
    from pocketmq.embedded.broker_runner import raising_cannot_start
    from pocketmq.embedded.listening import advertised_host, resolved, warn_if_open
    from pocketmq.embedded.stopping import serve_until_asked
    from pocketmq.net import Address
    from pocketmq.net.address import parse_addresses

    part = config.broker_name
    nameservers = [str(address) for address in parse_addresses(config.namesrv_addr)]
    listening = await resolved(config.bind_address, part)
    told = config.broker_ip1 or advertised_host(listening)
    config = msgspec.structs.replace(config, bind_address=listening, broker_ip1=told)
    broker = Broker(config, data, nameservers, own_process=True, given=given)

    async def start() -> str:
        with raising_cannot_start(part):
            address = await broker.start()
        warn_if_open(listening, guarded=config.guarded)
        return str(Address(told, config.advertised_port or address.port))

    await serve_until_asked(
        start,
        broker.stop,
        announce=lambda address: say_ready(
            f"namesrv={';'.join(nameservers)} brokers={part}@{address}", log, kept=kept
        ),
        force=end_at_once,
    )
