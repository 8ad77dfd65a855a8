"""Settings of a dashboard: where it listens, who may see it, whether it may change things."""

import ipaddress
from pathlib import Path

import msgspec

from pocketmq.errors import InvalidInput
from pocketmq.model.secrets import HIDDEN

SHORTEST_PASSWORD = 8


class DashboardSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings. Raises `InvalidInput` if other machines could reach it without a password."""

    host: str = "127.0.0.1"
    port: int = 8080
    """0 takes any free one."""
    password: str | None = None
    """The password of visitors; required unless only this machine can reach the dashboard."""
    allow_actions: bool = False
    """Whether pages may change the cluster."""
    names: tuple[str, ...] = ()
    """Further host names that browsers may use, such as the name of this machine."""
    sampling: bool = True
    """Whether to poll the cluster now and then while no page is open, for charts and history."""
    history: Path | None = None
    """The file that keeps the figures of charts over restarts."""
    events_topic: str | None = None
    """The topic that members publish their history to, for metrics of hand-overs."""

    def __post_init__(self) -> None:
        if self.password is not None and len(self.password) < SHORTEST_PASSWORD:
            raise InvalidInput(f"the password must have at least {SHORTEST_PASSWORD} characters")
        if self.password is None and not is_loopback(self.host):
            raise InvalidInput(
                f"{self.host} is reachable from other machines; set a password with "
                "--password-file or POCKETMQ_DASHBOARD_PASSWORD"
            )

    def __repr__(self) -> str:
        shown = None if self.password is None else HIDDEN
        return (
            f"DashboardSettings(host={self.host!r}, port={self.port}, password={shown!r}, "
            f"allow_actions={self.allow_actions}, names={self.names!r}, "
            f"sampling={self.sampling}, history={self.history!r}, "
            f"events_topic={self.events_topic!r})"
        )


def is_loopback(host: str) -> bool:
    """Return whether a host to listen on is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
