"""The gRPC service of `pocketmq up`: a proxy in a process of its own, as the cluster's client.

The process starts with the first client. Without TLS gRPC's library has the port itself, cannot
inherit one, and starts with the cluster.
"""

import logging
from functools import partial
from typing import Self

from pocketmq.broker.config import BrokerConfig
from pocketmq.cli.child_server import ChildServer, WaitingPort
from pocketmq.cli.proxy import PORT, TLS_VARIABLE, ProxyTls
from pocketmq.embedded.grpc_service import MISSING, grpc_installed, grpc_tls, self_signed_file
from pocketmq.embedded.listening import is_free
from pocketmq.embedded.settings import ClusterSettings
from pocketmq.embedded.supervisor import Supervisor
from pocketmq.errors import CannotStart, ListenFailed
from pocketmq.net import Address, TlsMode, parse_address

logger = logging.getLogger("pocketmq.cluster")


class GrpcPart:
    """A proxy beside a cluster. Belongs to one event loop."""

    def __init__(self, host: str, port: int | None, settings: ClusterSettings) -> None:
        self._host = host
        self._port = port
        self._settings = settings
        self._child: ChildServer | None = None
        self._waiting: WaitingPort | None = None

    @classmethod
    def chosen(cls, host: str, port: int | None, settings: ClusterSettings) -> Self | None:
        """Return the proxy for a port; without one, for Apache's port or else any free one.

        None if no port was asked for and its packages are missing; see `log_missing`. Raises
        `CannotStart` if they are missing for a port that was asked for.
        """
        if not grpc_installed():
            if port is not None:
                raise CannotStart("the proxy", MISSING)
            return None
        return cls(host, port, settings)

    async def start(self, supervisor: Supervisor) -> str:
        """Listen in front of a cluster that serves, and return the address.

        Raises `ListenFailed`, `CannotStart`.
        """
        options = supervisor.own_options
        assert options is not None
        config = BrokerConfig.from_properties(self._settings.config)
        port = self._port
        if port is None:
            port = PORT if is_free(self._host, PORT) else 0
        arguments = ["--host", self._host, "--port", str(port)]
        arguments += ["--log-level", self._settings.log.level]
        if self._settings.log.as_json:
            arguments.append("--log-json")
        if config.authentication_enabled:
            arguments.append("--access-control")
        kept = self_signed_file(self._settings)
        tls = ProxyTls(serve=grpc_tls(config), reach=options.tls, kept=str(kept or ""))
        secrets = {TLS_VARIABLE: tls.to_json()}
        if options.credentials is not None:
            secrets["POCKETMQ_ACCESS_KEY"] = options.credentials.access_key
            secrets["POCKETMQ_SECRET_KEY"] = options.credentials.secret_key
        self._child = child = ChildServer("proxy", "proxy", *arguments, secrets=secrets)
        if tls.serve is not None and tls.serve.mode is TlsMode.DISABLED:
            listening = parse_address(await child.start(options.name_servers))
        else:
            self._waiting = waiting = WaitingPort(
                "proxy", partial(child.start, options.name_servers)
            )
            child.on_exit = waiting.wait
            listening = await self._open(waiting, port)
        # What clients can connect to, where it listens on every interface.
        return str(Address(parse_address(supervisor.address).host, listening.port))

    async def _open(self, waiting: WaitingPort, port: int) -> Address:
        try:
            return await waiting.open(self._host, port)
        except ListenFailed:
            if self._port is not None:
                raise
            return await waiting.open(self._host, 0)  # taken since it was looked at

    async def stop(self) -> None:
        """Stop it; does nothing before `start` or a second time."""
        if self._waiting is not None:
            await self._waiting.close()
        if self._child is not None:
            await self._child.stop()

    def kill_now(self) -> None:
        """Kill it without waiting."""
        if self._child is not None:
            self._child.kill_now()


def log_missing() -> None:
    """Log how to get the gRPC service."""
    logger.info("gRPC clients are not served: %s", MISSING)
