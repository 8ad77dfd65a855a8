"""`pocketmq namesrv`: a name server alone, for brokers of ours and Java's."""

from pathlib import Path

import click

from pocketmq.cli import server_options as servers
from pocketmq.cli.commands import HELP
from pocketmq.embedded.server_logging import StderrLines, set_up_logging
from pocketmq.embedded.settings import nameserver_config, read_config_file
from pocketmq.nameserver import NameServer
from pocketmq.net import Address, ClientAuth, TlsMode, loops


@click.command("namesrv", context_settings=HELP)
@servers.listening_options(9876)
@click.option(
    "-c",
    "--config",
    "file",
    type=click.Path(path_type=Path),
    help="Settings file like Java's namesrv.conf; put secrets here.",
)
@servers.server_options(brokers=False)
def command(*, run: servers.ServerRun, host: str, port: int, file: Path | None) -> None:
    """Run a name server alone, also for Java brokers and clients.

    Prints `ready namesrv=HOST:PORT` once it serves; everything else goes to stderr.
    """
    config = nameserver_config(run.settings, read_config_file(file))
    log = set_up_logging(run.log)
    loops.run(_serve(host, port, NameServer(config, run.data), log))


async def _serve(host: str, port: int, server: NameServer, log: StderrLines) -> None:
    from pocketmq.embedded.broker_runner import raising_cannot_start
    from pocketmq.embedded.listening import (
        NAME_SERVER_ADVICE,
        advertised_host,
        resolved,
        warn_if_open,
    )
    from pocketmq.embedded.stopping import serve_until_asked

    part = "the name server"

    async def start() -> str:
        listening = await resolved(host, part)
        with raising_cannot_start(part):
            address = await server.start(listening, port)
        tls = server.config.server_tls()
        shown = tls is not None and tls.client_auth is ClientAuth.REQUIRE
        guarded = shown and tls is not None and tls.mode is TlsMode.ENFORCING
        guarded = guarded or server.config.authentication_enabled
        warn_if_open(listening, guarded=guarded, advice=NAME_SERVER_ADVICE)
        return str(Address(advertised_host(listening), address.port))

    await serve_until_asked(
        start,
        server.stop,
        announce=lambda address: servers.announce_ready(f"namesrv={address}", log, chosen=True),
        force=servers.exit_at_once,
    )
