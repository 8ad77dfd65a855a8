"""Commands for the accounts of 4.x brokers with access control."""

from pocketmq.admin.admin import Admin
from pocketmq.cli.admin.flags import BROKER, CLUSTER, names_in, one_target, text, truth
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, changed, row, told, when
from pocketmq.cli.secret_input import read_secret
from pocketmq.protocol.requests.access import Account

_COLUMNS = "%-16s  %-22s  %-22s  %-20s  %-22s  %-22s"
_KEY = text("-a", "--accessKey", "key", help="Name of the account.", required=True)


def _names(given: str | None) -> list[str] | None:
    return None if given is None else names_in(given)


@admin_command(
    "updateAclConfig",
    _KEY,
    text("-s", "--secretKey", "secret", help="Password; - prompts for it."),
    text("--secretKeyFile", "secret_file", help="File whose first line is the password."),
    text("-w", "--whiteRemoteAddress", "white", help="Addresses that need no signature."),
    text(
        "-i",
        "--defaultTopicPerm",
        "topic_perm",
        help="Default for topics: DENY, PUB, SUB or PUB|SUB.",
    ),
    text("-u", "--defaultGroupPerm", "group_perm", help="Default for groups: DENY or SUB."),
    text("-t", "--topicPerms", "topics", help="Per topic, such as orders=PUB|SUB,secrets=DENY."),
    text("-g", "--groupPerms", "groups", help="Per group, such as billing=SUB."),
    truth("-m", "--admin", "is_admin", default=False, help="Allow everything."),
    BROKER,
    CLUSTER,
)
async def update(
    admin: Admin,
    *,
    key: str,
    secret: str | None,
    secret_file: str | None,
    white: str | None,
    topic_perm: str | None,
    group_perm: str | None,
    topics: str | None,
    groups: str | None,
    is_admin: bool,
    address: str | None,
    cluster: str | None,
) -> Shown:
    """Create or change an account of 4.x brokers.

    On one broker, or on all masters of a cluster.
    """
    one_target(cluster, address)
    secret = read_secret(
        "secret", secret, secret_file, flag="-s", safe="--secretKeyFile", confirm=True
    )
    account = Account(
        access_key=key,
        secret_key=secret,
        white_remote_address=white,
        admin=is_admin,
        default_topic_perm=topic_perm,
        default_group_perm=group_perm,
        topic_perms=_names(topics),
        group_perms=_names(groups),
    )
    done = await admin.accounts.put(account, cluster, address)
    return changed(done, "create or update plain access config to {} success.", account=key)


@admin_command("deleteAclConfig", _KEY, BROKER, CLUSTER, asks="Delete account {key}?")
async def delete(admin: Admin, *, key: str, address: str | None, cluster: str | None) -> Shown:
    """Delete an account of 4.x brokers.

    From one broker, or from all masters of a cluster.
    """
    one_target(cluster, address)
    done = (await admin.accounts.delete(key, cluster, address)).some()
    lines = [
        f"delete plain access config account from {each.place.address} success." for each in done
    ]
    data = {"account": key, "brokers": [each.place for each in done]}
    return Shown([*lines, f"account's accesskey is:{key}"], data, told(done.missing))


@admin_command(
    "updateGlobalWhiteAddr",
    text(
        "-g",
        "--globalWhiteRemoteAddresses",
        "white",
        help="Addresses, such as 10.0.0.*.",
        required=True,
    ),
    text("-p", "--aclFileFullPath", "file", help="File of the broker to change."),
    BROKER,
    CLUSTER,
    asks="Allow access from {white} without a signature?",
)
async def trust(
    admin: Admin, *, white: str, file: str | None, address: str | None, cluster: str | None
) -> Shown:
    """Set the addresses that need no signature (4.x)."""
    one_target(cluster, address)
    addresses = names_in(white)
    done = await admin.accounts.trust(addresses, cluster, address, file=file)
    line = "update global white remote addresses to {} success."
    return changed(done, line, addresses=addresses)


@admin_command("clusterAclConfigVersion", BROKER, CLUSTER)
async def version(admin: Admin, *, address: str | None, cluster: str | None) -> Shown:
    """Show the versions of 4.x brokers' access files."""
    one_target(cluster, address)
    found = (await admin.accounts.versions(cluster, address)).some()
    heads = ("#Cluster Name", "#Broker Name", "#Broker Addr", "#AclFilePath")
    lines = [row(_COLUMNS, *heads, "#AclConfigVersionNum", "#AclLastUpdateTime")]
    for each in found:
        where = (each.value.cluster, each.value.broker, each.place.address)
        lines += [
            row(_COLUMNS, *where, name, state.counter, when(state.timestamp))
            for name, state in each.value.files.items()
        ]
    what = "broker" if address is not None else "cluster"
    lines.append(f"get {what}'s plain access config version success.")
    return Shown(lines, {each.place.address: each.value for each in found}, told(found.missing))
