"""`pocketmq proxy`: RocketMQ 5's gRPC service; alone, or as a child of `pocketmq up`."""

from typing import TYPE_CHECKING, Any

import click

from pocketmq.cli import server_options as servers
from pocketmq.cli.connection_options import Entry, entry_options
from pocketmq.cli.lazy_group import HELP
from pocketmq.cli.options import namesrv_option
from pocketmq.embedded.child import die_with_parent
from pocketmq.embedded.early_stop import remember_stop_signals
from pocketmq.embedded.grpc_service import MISSING, grpc_installed
from pocketmq.embedded.server_logging import StderrLines, set_up_logging
from pocketmq.errors import CannotStart
from pocketmq.net import loops

if TYPE_CHECKING:
    from pocketmq.proxy.server import Proxy

PORT = 8081


@click.command("proxy", context_settings=HELP)
@namesrv_option()
@servers.listening_options(PORT)
@click.option(
    "--access-control",
    is_flag=True,
    help="Require signed calls of the cluster's users; needs --access-key of a super user.",
)
@click.option("--serve-cert", metavar="FILE", default="", help="Certificate to serve TLS, PEM.")
@click.option(
    "--serve-key", metavar="FILE", default="", help="Its key, PEM, if not in the same file."
)
@click.option("--with-parent", is_flag=True, hidden=True, help="Exit with the parent process.")
@entry_options
@servers.logging_options
def command(
    *,
    namesrv: str,
    host: str,
    port: int,
    access_control: bool,
    serve_cert: str,
    serve_key: str,
    with_parent: bool,
    **given: Any,
) -> None:
    """Serve RocketMQ 5's gRPC clients in front of a cluster, PocketMQ's or Apache's.

    Prints `ready HOST:PORT` once it serves; everything else goes to stderr. Consumers need 5.x
    brokers. SIGTERM or Ctrl-C stops it.
    """
    remember_stop_signals()
    if not grpc_installed():
        raise CannotStart("the proxy", MISSING)
    from pocketmq.client.options import ClientOptions
    from pocketmq.net import ServerTls
    from pocketmq.proxy.access import ProxyAccess
    from pocketmq.proxy.server import Proxy

    log = set_up_logging(servers.log_settings(given))
    if with_parent:
        die_with_parent()
    entry = Entry.taken_from(given)
    if access_control and entry.credentials is None:
        raise click.UsageError("--access-control needs --access-key and its password")
    options = ClientOptions(name_servers=namesrv, credentials=entry.credentials, tls=entry.tls)
    proxy = Proxy(
        options,
        host=host,
        port=port,
        access=ProxyAccess(authenticate=access_control, authorize=access_control),
        tls=ServerTls(cert=serve_cert, key=serve_key) if serve_cert else None,
    )
    loops.run(_serve(proxy, log, 0 if with_parent else None))


async def _serve(proxy: "Proxy", log: StderrLines, lifeline: int | None) -> None:
    from pocketmq.embedded.stopping import serve_until_asked

    async def start() -> str:
        return (await proxy.start()).address

    await serve_until_asked(
        start,
        proxy.stop,
        announce=lambda address: servers.announce_ready(address, log, chosen=True),
        force=servers.exit_at_once,
        lifeline=lifeline,
    )
