"""The settings of a name server's access control. Read at the start, never changed over the wire.

The keys are the broker's where they mean the same, so that one file serves a whole cluster.
"""

from pocketmq.errors import InvalidInput
from pocketmq.model.secrets import initial_users
from pocketmq.net import DoorSettings
from pocketmq.net.doorway import Networks, parse_networks

SECRET_KEYS = frozenset({"initAuthenticationUser", "innerClientAuthenticationCredentials"})


class NameServerAccess(DoorSettings, frozen=True, kw_only=True, rename="camel"):
    """Who may change what a name server knows; the defaults are Java's: everybody."""

    authentication_enabled: bool = False
    """Whether requests that change anything need a super user's signature."""

    read_authentication_enabled: bool = False
    """Whether all other requests need a user's signature, too."""

    init_authentication_user: str = ""
    """A super user, `{"username":…,"password":…}`."""

    inner_client_authentication_credentials: str = ""
    """A super user, `{"accessKey":…,"secretKey":…}`."""

    authentication_users_file: str = ""
    """A JSON file of further users; read again when it changes."""

    trusted_broker_addresses: str = ""
    """Addresses and networks, joined by `,`, whose brokers register without a signature."""

    broker_take_over_enable: bool = False
    """Whether a registration replaces a live broker of the same name and id, as in Java."""

    def __post_init__(self) -> None:
        self.server_tls()
        self.trusted_brokers()
        self.initial_users()
        if self.read_authentication_enabled and not self.authentication_enabled:
            raise InvalidInput("readAuthenticationEnabled needs authenticationEnabled=true")

    def initial_users(self) -> list[tuple[str, str]]:
        """Return names and passwords of the super users in the settings. Raises `InvalidInput`."""
        return initial_users(
            self.init_authentication_user, self.inner_client_authentication_credentials
        )

    def trusted_brokers(self) -> Networks:
        """Return where brokers need no signature. Raises `InvalidInput`."""
        return parse_networks(self.trusted_broker_addresses)
