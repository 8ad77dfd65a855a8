"""What a dashboard is told: where to listen, who may look, what may be done."""

import ipaddress

import msgspec

from pocketmq.errors import InvalidInput
from pocketmq.model.secrets import HIDDEN

SHORTEST_PASSWORD = 8


class DashboardSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a dashboard is run. Raises `InvalidInput` if others could look without a password."""

    host: str = "127.0.0.1"
    port: int = 8080
    """0 takes any free one."""
    password: str | None = None
    """What visitors have to know; needed unless only this machine can reach the dashboard."""
    allow_actions: bool = False
    """Whether the cluster can be changed from here."""
    names: tuple[str, ...] = ()
    """Further host names by which browsers may come, such as the name of this machine."""

    def __post_init__(self) -> None:
        if self.password is not None and len(self.password) < SHORTEST_PASSWORD:
            raise InvalidInput(f"a password has at least {SHORTEST_PASSWORD} characters")
        if self.password is None and not is_loopback(self.host):
            raise InvalidInput(
                f"others than this machine reach {self.host}: give a password with "
                "--password-file or POCKETMQ_DASHBOARD_PASSWORD"
            )

    def __repr__(self) -> str:
        shown = None if self.password is None else HIDDEN
        return (
            f"DashboardSettings(host={self.host!r}, port={self.port}, password={shown!r}, "
            f"allow_actions={self.allow_actions}, names={self.names!r})"
        )


def is_loopback(host: str) -> bool:
    """Tell whether a host to listen on is for this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
