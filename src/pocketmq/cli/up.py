"""`pocketmq up`: a cluster on this machine, brokers as processes under one supervisor."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pocketmq.cli.server_options import (
    PORT,
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
from pocketmq.embedded.settings import ClusterSettings, cluster_config, read_config_file

if TYPE_CHECKING:
    from pocketmq.embedded.supervisor import Supervisor


@click.command("up", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--brokers", type=click.IntRange(1, 64), default=1, help="How many, usually 1.")
@listening_options(9876, "the name server")
@click.option(
    "--broker-port",
    type=PORT,
    help="Port of the first broker, the others 10 apart; usually 10911 if free, else any.",
)
@click.option("--advertise", metavar="HOST", default="", help="Host to tell clients, if another.")
@click.option(
    "-c",
    "--config",
    "file",
    type=click.Path(path_type=Path),
    help="Settings of all brokers as Java's broker.conf; the place for secrets.",
)
@data_options
@tls_options
@metrics_option
@settings_option
@logging_options
def command(
    *,
    brokers: int,
    host: str,
    port: int,
    broker_port: int | None,
    advertise: str,
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
    """Run a cluster: a name server and brokers.

    Prints `ready namesrv=HOST:PORT brokers=NAME@HOST:PORT,…` once it serves; everything else goes
    to stderr. SIGTERM or Ctrl-C stops it cleanly, a second one at once.
    """
    remember_stop_signals()
    settings = ClusterSettings(
        brokers=brokers,
        data=chosen_data(data, memory),
        in_process=False,
        host=host,
        port=port,
        broker_port=broker_port,
        advertise=advertise,
        config=cluster_config(
            read_config_file(file)
            | read_pairs(pairs)
            | chosen_tls(tls_cert, tls_key, tls_mode)
            | chosen_metrics(metrics_port)
        ),
        revive=True,
        log=chosen_log(log_level, log_json),
    )
    # The slow parts to import; wrong options are told without them.
    from pocketmq.embedded.forking import fork_brokers
    from pocketmq.embedded.supervisor import Supervisor

    supervisor = Supervisor(settings, fork_brokers(settings.names))
    log = set_up_logging(settings.log)
    asyncio.run(_serve(supervisor, log, kept=memory or data is not None))


async def _serve(supervisor: "Supervisor", log: StderrLines, *, kept: bool) -> None:
    from pocketmq.embedded.stopping import serve_until_asked

    def announce(address: str) -> None:
        members = supervisor.members.values()
        brokers = ",".join(f"{member.name}@{member.address}" for member in members)
        say_ready(f"namesrv={address} brokers={brokers}", log, kept=kept)

    def force() -> None:
        supervisor.abandon()
        end_at_once()

    await serve_until_asked(supervisor.start, supervisor.stop, announce=announce, force=force)
