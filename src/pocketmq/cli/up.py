"""`pocketmq up`: a cluster on this machine, brokers as processes under one supervisor."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pocketmq.cli import server_options as servers
from pocketmq.cli.commands import HELP
from pocketmq.cli.grpc_part import GrpcPart, log_missing
from pocketmq.embedded.server_logging import LogSettings, StderrLines, set_up_logging
from pocketmq.embedded.settings import ClusterSettings, cluster_config, read_config_file
from pocketmq.net import TlsMode, loops

if TYPE_CHECKING:
    from pocketmq.cli.child_server import ChildServer
    from pocketmq.embedded.supervisor import Supervisor

_HISTORY = "dashboard.sqlite"
"""The file in the data directory that keeps the charts of the dashboard."""


@click.command("up", context_settings=HELP)
@click.option(
    "--brokers",
    type=click.IntRange(1, 64),
    metavar="N",
    default=1,
    show_default=True,
    help="Number of brokers.",
)
@servers.listening_options(9876)
@click.option(
    "--broker-port",
    type=servers.PORT,
    metavar="PORT",
    help="Port of the first broker, each next one 10 higher.  [default: 10911 if free]",
)
@servers.ADVERTISE
@click.option(
    "-c",
    "--config",
    "file",
    type=click.Path(path_type=Path),
    help="Settings file of all brokers like Java's broker.conf; put secrets here.",
)
@click.option(
    "--dashboard",
    "dashboard_port",
    type=servers.PORT,
    metavar="PORT",
    help="Also start a dashboard on this port of 127.0.0.1; 0 takes any free one.",
)
@click.option("--allow-actions", is_flag=True, help="Let the dashboard change the cluster.")
@click.option(
    "--grpc",
    "grpc_port",
    type=servers.PORT,
    metavar="PORT",
    help="Port for RocketMQ 5's gRPC clients; 0 takes any free one.  [default: 8081 if free]",
)
@click.option("--no-grpc", is_flag=True, help="Serve no gRPC clients.")
@servers.server_options(brokers=True)
def command(
    *,
    run: servers.ServerRun,
    brokers: int,
    host: str,
    port: int,
    broker_port: int | None,
    advertise: str,
    file: Path | None,
    dashboard_port: int | None,
    allow_actions: bool,
    grpc_port: int | None,
    no_grpc: bool,
) -> None:
    """Run a cluster: a name server and brokers.

    Prints `ready namesrv=HOST:PORT brokers=NAME@HOST:PORT,…` once it serves, followed by
    `grpc=HOST:PORT` and `dashboard=URL` if there are such; everything else goes to stderr. SIGTERM
    or Ctrl-C shuts it down gracefully, a second one immediately.
    """
    from_file = read_config_file(file)
    settings = ClusterSettings(
        brokers=brokers,
        data=run.data,
        in_process=False,
        host=host,
        port=port,
        broker_port=broker_port,
        advertise=advertise,
        config=cluster_config(from_file | run.settings),
        from_file=frozenset(from_file.keys() - run.settings.keys()),
        revive=True,
        log=run.log,
    )
    enforcing = run.settings.get("tls.server.mode") == TlsMode.ENFORCING
    history = None if run.data is None else run.data / _HISTORY
    dashboard = _dashboard(
        dashboard_port, run.log, history, tls=enforcing, allow_actions=allow_actions
    )
    if no_grpc and grpc_port is not None:
        raise click.UsageError("--grpc and --no-grpc exclude each other")
    grpc = None if no_grpc else GrpcPart.chosen(host, grpc_port, settings)
    # The slow parts to import; wrong options are reported without them.
    from pocketmq.embedded.forking import fork_brokers
    from pocketmq.embedded.supervisor import Supervisor

    loops.loop_maker()  # imports what it needs, once for all brokers
    supervisor = Supervisor(settings, fork_brokers(settings.names))
    log = set_up_logging(settings.log)
    if grpc is None and not no_grpc:
        log_missing()
    loops.run(_serve(supervisor, grpc, dashboard, log, chosen=run.chosen))


def _dashboard(
    port: int | None, log: LogSettings, history: Path | None, *, tls: bool, allow_actions: bool
) -> "ChildServer | None":
    if port is None:
        if allow_actions:
            raise click.UsageError("--allow-actions needs --dashboard PORT")
        return None
    from pocketmq.cli.child_server import ChildServer
    from pocketmq.cli.dashboard import check_installed

    check_installed()
    flags = {
        "--log-json": log.as_json,
        "--allow-actions": allow_actions,
        "--tls-no-verify": tls,  # it connects to this machine only
    }
    given = [flag for flag, wanted in flags.items() if wanted]
    if history is not None:
        given += ["--history", str(history)]
    own = ("--port", str(port), "--log-level", log.level, *given)
    return ChildServer("dashboard", "dashboard", *own)


async def _serve(
    supervisor: "Supervisor",
    grpc: GrpcPart | None,
    dashboard: "ChildServer | None",
    log: StderrLines,
    *,
    chosen: bool,
) -> None:
    from pocketmq.embedded.stopping import serve_until_asked

    async def start() -> str:
        address = await supervisor.start()
        members = supervisor.members.values()
        brokers = ",".join(f"{member.name}@{member.address}" for member in members)
        line = f"namesrv={address} brokers={brokers}"
        if grpc is not None:
            line += f" grpc={await grpc.start(supervisor)}"
        return line if dashboard is None else f"{line} dashboard={await dashboard.start(address)}"

    async def stop() -> None:
        for beside in (dashboard, grpc):
            if beside is not None:
                await beside.stop()
        await supervisor.stop()

    def force() -> None:
        for beside in (dashboard, grpc):
            if beside is not None:
                beside.kill_now()
        supervisor.abandon()
        servers.exit_at_once()

    await serve_until_asked(
        start,
        stop,
        announce=lambda line: servers.announce_ready(line, log, chosen=chosen),
        force=force,
    )
