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
from pocketmq.net import TlsMode

if TYPE_CHECKING:
    from pocketmq.cli.dashboard import DashboardChild
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
@click.option(
    "--dashboard",
    "dashboard_port",
    type=PORT,
    help="Port for a dashboard on 127.0.0.1; 0 takes any free one.",
)
@click.option("--allow-actions", is_flag=True, help="Let the dashboard change the cluster.")
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
    dashboard_port: int | None,
    allow_actions: bool,
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

    Prints `ready namesrv=HOST:PORT brokers=NAME@HOST:PORT,…` once it serves, and `dashboard=URL`
    behind it if there is one; everything else goes to stderr. SIGTERM or Ctrl-C stops it cleanly, a
    second one at once.
    """
    remember_stop_signals()
    from_file = read_config_file(file)
    options = (
        read_pairs(pairs) | chosen_tls(tls_cert, tls_key, tls_mode) | chosen_metrics(metrics_port)
    )
    settings = ClusterSettings(
        brokers=brokers,
        data=chosen_data(data, memory),
        in_process=False,
        host=host,
        port=port,
        broker_port=broker_port,
        advertise=advertise,
        config=cluster_config(from_file | options),
        from_file=frozenset(from_file.keys() - options.keys()),
        revive=True,
        log=chosen_log(log_level, log_json),
    )
    told = ("--log-level", log_level, *(("--log-json",) if log_json else ()))
    beside = _dashboard(dashboard_port, told, tls_mode, allow_actions=allow_actions)
    # The slow parts to import; wrong options are told without them.
    from pocketmq.embedded.forking import fork_brokers
    from pocketmq.embedded.supervisor import Supervisor

    supervisor = Supervisor(settings, fork_brokers(settings.names))
    log = set_up_logging(settings.log)
    asyncio.run(_serve(supervisor, beside, log, kept=memory or data is not None))


def _dashboard(
    port: int | None, told: tuple[str, ...], tls_mode: str | None, *, allow_actions: bool
) -> "DashboardChild | None":
    if port is None:
        if allow_actions:
            raise click.UsageError("--allow-actions is for --dashboard")
        return None
    from pocketmq.cli.dashboard import DashboardChild, check_installed

    check_installed()
    actions = ("--allow-actions",) if allow_actions else ()
    # It is this machine that it speaks to.
    tls = ("--tls-no-verify",) if tls_mode == TlsMode.ENFORCING else ()
    return DashboardChild(port, *told, *actions, *tls)


async def _serve(
    supervisor: "Supervisor", beside: "DashboardChild | None", log: StderrLines, *, kept: bool
) -> None:
    from pocketmq.embedded.stopping import serve_until_asked

    async def start() -> str:
        address = await supervisor.start()
        members = supervisor.members.values()
        brokers = ",".join(f"{member.name}@{member.address}" for member in members)
        line = f"namesrv={address} brokers={brokers}"
        return line if beside is None else f"{line} dashboard={await beside.start(address)}"

    async def stop() -> None:
        if beside is not None:
            await beside.stop()
        await supervisor.stop()

    def force() -> None:
        if beside is not None:
            beside.kill_now()
        supervisor.abandon()
        end_at_once()

    await serve_until_asked(
        start, stop, announce=lambda line: say_ready(line, log, kept=kept), force=force
    )
