"""Settings by keyword: one flat list for users, divided into client options and member options.

Knows the option classes, not what options mean.
"""

from collections.abc import Mapping
from typing import Any, TypedDict, TypeVar

import msgspec

from pocketmq.balance.profile import Profile
from pocketmq.client.checks import ProfileWord
from pocketmq.client.options import ClientOptions, Credentials
from pocketmq.errors import InvalidInput
from pocketmq.net import Tls

Own = TypeVar("Own", bound=msgspec.Struct)


class ClientSettings(TypedDict, total=False):
    """The fields of `ClientOptions` as keywords of a member; name servers come before them."""

    client_ip: str | None
    instance_name: str
    unit_name: str
    namespace: str
    namespace_v2: str
    credentials: Credentials | None
    tls: Tls | None
    profile: Profile | ProfileWord
    request_timeout: float
    start_wait: float | None
    route_interval: float
    heartbeat_interval: float
    heartbeat_first_after: float
    persist_interval: float
    persist_first_after: float
    heartbeat_v2: bool
    vip_channel: bool


def sort_settings(
    own: type[Own],
    group: str,
    name_servers: str,
    options: ClientOptions | None,
    settings: Mapping[str, Any],
) -> tuple[ClientOptions, Own]:
    """Return the client's options and the member's own.

    Keywords override the fields of `options`. Raises `InvalidInput` for an unknown keyword, and
    for values that can never work.
    """
    _check_given(name_servers, options)
    of_client = set(ClientOptions.__struct_fields__) - {"name_servers"}
    of_member = set(own.__struct_fields__) - {"group"}
    for name in settings:
        if name not in of_client and name not in of_member:
            from difflib import get_close_matches  # slow to import, and only mistakes need it

            near = get_close_matches(name, of_client | of_member | {"name_servers", "group"}, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidInput(f"there is no setting {name!r}{hint}")
    client = {name: value for name, value in settings.items() if name in of_client}
    if name_servers != "":
        client["name_servers"] = name_servers
    member = {name: value for name, value in settings.items() if name in of_member}
    common = options or ClientOptions()
    # `replace` alone would not check the new values.
    fields = {name: getattr(common, name) for name in ClientOptions.__struct_fields__}
    return ClientOptions(**fields | client), own(group=group, **member)


def _check_given(name_servers: object, options: object) -> None:
    if not isinstance(name_servers, str):
        raise InvalidInput(
            f"name servers are text such as 'host1:9876;host2:9876', not {name_servers!r}"
        )
    if options is not None and not isinstance(options, ClientOptions):
        raise InvalidInput(f"options are a ClientOptions, not a {type(options).__name__}")
