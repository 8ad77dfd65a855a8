"""`pocketmq proxy`: RocketMQ 5's gRPC service; alone, or as a child of `pocketmq up`."""

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pocketmq.cli import server_options as servers
from pocketmq.cli.commands import HELP, namesrv_option
from pocketmq.cli.connection_options import Entry, entry_options
from pocketmq.embedded.grpc_service import MISSING, grpc_installed
from pocketmq.embedded.own_process import die_with_parent, remember_stop_signals
from pocketmq.embedded.server_logging import StderrLines, set_up_logging
from pocketmq.errors import CannotStart
from pocketmq.net import ServerTls, Tls, TlsMode, loops

if TYPE_CHECKING:
    from pocketmq.proxy.server import Proxy

PORT = 8081
TLS_VARIABLE = "POCKETMQ_PROXY_TLS"
"""How a parent process passes `ProxyTls` on: it may hold a password, which arguments must not."""


class ProxyTls(msgspec.Struct, frozen=True, kw_only=True):
    """TLS of a proxy in both directions."""

    serve: ServerTls | None
    """None: TLS or plain, with a self-signed certificate."""
    reach: Tls | None
    kept: str = ""
    """The file that keeps the self-signed certificate; empty: it is in memory."""

    def to_json(self) -> str:
        """Return it as text."""
        return msgspec.json.encode(self).decode()


@click.command("proxy", context_settings=HELP)
@namesrv_option()
@servers.listening_options(PORT)
@click.option(
    "--access-control",
    is_flag=True,
    help="Require signed calls of the cluster's users; needs --access-key of a super user.",
)
@click.option(
    "--serve-cert",
    metavar="FILE",
    default="",
    help="Certificate to serve TLS, PEM.  [default: a self-signed one]",
)
@click.option(
    "--serve-key", metavar="FILE", default="", help="Its key, PEM, if not in the same file."
)
@click.option(
    "--serve-tls",
    type=click.Choice([str(mode) for mode in TlsMode]),
    default=str(TlsMode.PERMISSIVE),
    show_default=True,
    help="Whether clients may or must use TLS; enforcing needs --serve-cert.",
)
@click.option("--with-parent", is_flag=True, hidden=True, help="Exit with the parent process.")
@click.option("--sockets", default="", hidden=True, help="Sockets of the parent that listen.")
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
    serve_tls: str,
    with_parent: bool,
    sockets: str,
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
    from pocketmq.proxy.server import Proxy
    from pocketmq.proxy.translation.limits import ProxyAccess

    log = set_up_logging(servers.log_settings(given))
    if with_parent:
        die_with_parent()
    entry = Entry.taken_from(given)
    if access_control and entry.credentials is None:
        raise click.UsageError("--access-control needs --access-key and its password")
    tls = _tls(entry, TlsMode(serve_tls), serve_cert, serve_key, inherited=with_parent)
    options = ClientOptions(name_servers=namesrv, credentials=entry.credentials, tls=tls.reach)
    proxy = Proxy(
        options,
        host=host,
        port=port,
        access=ProxyAccess(authenticate=access_control, authorize=access_control),
        tls=tls.serve,
        self_signed=Path(tls.kept) if tls.kept else None,
    )
    inherited = [socket.socket(fileno=int(each)) for each in sockets.split(",") if each]
    loops.run(_serve(proxy, log, 0 if with_parent else None, inherited))


def _tls(entry: Entry, mode: TlsMode, cert: str, key: str, *, inherited: bool) -> ProxyTls:
    """Return the TLS of the options, or of the parent process."""
    text = os.environ.pop(TLS_VARIABLE, "") if inherited else ""
    if text:
        return msgspec.json.decode(text, type=ProxyTls)
    if key and not cert:
        raise click.UsageError("--serve-key needs --serve-cert")
    own_certificate = mode is TlsMode.PERMISSIVE and not cert
    serve = None if own_certificate else ServerTls(mode=mode, cert=cert, key=key)
    return ProxyTls(serve=serve, reach=entry.tls)


async def _serve(
    proxy: "Proxy", log: StderrLines, lifeline: int | None, sockets: list[socket.socket]
) -> None:
    from pocketmq.embedded.stopping import serve_until_asked

    async def start() -> str:
        return (await proxy.start(sockets)).address

    await serve_until_asked(
        start,
        proxy.stop,
        announce=lambda address: servers.announce_ready(address, log, chosen=True),
        force=servers.exit_at_once,
        lifeline=lifeline,
    )
