"""The gRPC service of an embedded cluster: a proxy on the cluster's own event loop."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pocketmq.broker.config import BrokerConfig
from pocketmq.embedded.settings import ClusterSettings
from pocketmq.embedded.supervisor import Supervisor
from pocketmq.errors import CannotStart
from pocketmq.net import ServerTls, TlsMode

if TYPE_CHECKING:
    from pocketmq.proxy.server import Proxy

PACKAGES = ("grpc", "grpc_health", "grpc_reflection", "cryptography")
MISSING = "packages are missing: pip install 'pocketmq[grpc]'"


class GrpcService:
    """A proxy in front of a running cluster. Belongs to one event loop."""

    def __init__(self, supervisor: Supervisor, host: str) -> None:
        self._supervisor = supervisor
        self._host = host
        self._proxy: Proxy | None = None

    @property
    def address(self) -> str:
        """Where it listens, once it is started."""
        return "" if self._proxy is None else self._proxy.address

    async def start(self, port: int) -> None:
        """Listen on a port, 0 for any free one. Raises `CannotStart`."""
        if not grpc_installed():
            raise CannotStart("the proxy", MISSING)
        from pocketmq.proxy.server import Proxy
        from pocketmq.proxy.translation.limits import ProxyAccess

        options = self._supervisor.own_options
        assert options is not None
        config = BrokerConfig.from_properties(self._supervisor.settings.config)
        access = ProxyAccess(
            authenticate=config.authentication_enabled, authorize=config.authorization_enabled
        )
        proxy = Proxy(
            options,
            host=self._host,
            port=port,
            access=access,
            tls=grpc_tls(config),
            self_signed=self_signed_file(self._supervisor.settings),
        )
        await proxy.start()
        self._proxy = proxy

    async def stop(self) -> None:
        """Stop it; does nothing before `start` or a second time."""
        proxy, self._proxy = self._proxy, None
        if proxy is not None:
            await proxy.stop()


def grpc_tls(config: BrokerConfig) -> ServerTls | None:
    """Return the TLS of the gRPC port: as the brokers', but self-signed without a certificate.

    None means that. Raises `InvalidInput` for a combination that cannot work.
    """
    tls = config.server_tls()
    if tls is None and not config.self_signs:
        return ServerTls(mode=TlsMode.DISABLED)
    return tls


def self_signed_file(settings: ClusterSettings) -> Path | None:
    """Return the file that keeps the self-signed certificate of a cluster; None: in memory."""
    named = BrokerConfig.from_properties(settings.shared | settings.config)
    path = named.tls_server_self_signed_path
    return Path(path) if path else None


def grpc_installed() -> bool:
    """Return whether the packages of the extra `grpc` are installed."""
    try:
        return all(find_spec(name) is not None for name in PACKAGES)
    except ValueError:  # what Python raises for a module that was removed from sys.modules
        return False
