"""`pocketmq namesrv`: a name server alone, for brokers of ours and Java's."""

import asyncio
from pathlib import Path

import click

from pocketmq.cli.server_options import (
    chosen_data,
    chosen_log,
    chosen_tls,
    end_at_once,
    listening_options,
    logging_options,
    read_pairs,
    say_ready,
    settings_option,
    tls_options,
)
from pocketmq.embedded.early_stop import remember_stop_signals
from pocketmq.embedded.server_logging import StderrLines, set_up_logging
from pocketmq.embedded.settings import nameserver_config, read_config_file
from pocketmq.nameserver import NameServer


@click.command("namesrv", context_settings={"help_option_names": ["-h", "--help"]})
@listening_options(9876, "the name server")
@click.option(
    "-c",
    "--config",
    "file",
    type=click.Path(path_type=Path),
    help="Settings as Java's namesrv.conf; the place for secrets.",
)
@click.option(
    "--data",
    metavar="DIR",
    help="Directory for key values and changed settings; without it they end with the process.",
)
@tls_options
@settings_option
@logging_options
def command(
    *,
    host: str,
    port: int,
    file: Path | None,
    data: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    tls_mode: str | None,
    pairs: tuple[str, ...],
    log_level: str,
    log_json: bool,
) -> None:
    """Run a name server alone, also for Java brokers and clients.

    Prints `ready namesrv=HOST:PORT` once it serves; everything else goes to stderr.
    """
    remember_stop_signals()
    given = read_pairs(pairs) | chosen_tls(tls_cert, tls_key, tls_mode)
    config = nameserver_config(given, read_config_file(file))
    log = set_up_logging(chosen_log(log_level, log_json))
    asyncio.run(_serve(host, port, NameServer(config, chosen_data(data)), log))


async def _serve(host: str, port: int, server: NameServer, log: StderrLines) -> None:
    from pocketmq.embedded.broker_runner import raising_cannot_start
    from pocketmq.embedded.listening import (
        NAME_SERVER_ADVICE,
        advertised_host,
        resolved,
        warn_if_open,
    )
    from pocketmq.embedded.stopping import serve_until_asked
    from pocketmq.net import Address, ClientAuth, TlsMode

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
        announce=lambda address: say_ready(f"namesrv={address}", log, kept=True),
        force=end_at_once,
    )
