"""Commands for the users of clusters with access control (5.x)."""

import click

from pocketmq.admin.admin import Admin
from pocketmq.admin.gathered import Gathered
from pocketmq.cli.admin.flags import BROKER, CLUSTER, flag, names_in, one_target, text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import java_word
from pocketmq.cli.admin.shown import Shown, changed, row, told
from pocketmq.cli.secret_input import ask_secret, read_secret
from pocketmq.errors import Absent
from pocketmq.protocol.requests.access import User

_COLUMNS = "%-16s  %-22s  %-22s  %-22s"
_HEAD = row(_COLUMNS, "#UserName", "#Password", "#UserType", "#UserStatus")
_USERNAME = text("-u", "--username", help="User name.", required=True)
_TYPE = text("-t", "--userType", "kind", help="Super or Normal.")
_SHOW = flag("--show-password", "open_", help="Print passwords instead of hiding them.")
_PASSWORD_FILE = text(
    "--password-file", "password_file", help="File whose first line is the password."
)
_HIDDEN = "******"


def _password(given: str | None, file: str | None) -> str | None:
    return read_secret("password", given, file, flag="-p", safe="--password-file", confirm=True)


def _done(verb: str, done: Gathered[None], username: str) -> Shown:
    return changed(done, f"{verb} user to {{}} success.", user=username)


def _line(user: User, *, open_: bool) -> str:
    password = java_word(user.password) if open_ or not user.password else _HIDDEN
    fields = (user.username, password, user.user_type, user.user_status)
    return row(_COLUMNS, *map(java_word, fields))


def _value(user: User, *, open_: bool) -> dict[str, str | None]:
    return {
        "username": user.username,
        "password": user.password if open_ or not user.password else _HIDDEN,
        "user_type": user.user_type,
        "user_status": user.user_status,
    }


@admin_command(
    "createUser",
    _USERNAME,
    text("-p", "--password", help="Password; - prompts for it.  [default: prompt]"),
    _PASSWORD_FILE,
    _TYPE,
    BROKER,
    CLUSTER,
)
async def create(
    admin: Admin,
    *,
    username: str,
    password: str | None,
    password_file: str | None,
    kind: str | None,
    address: str | None,
    cluster: str | None,
) -> Shown:
    """Create a user.

    On one broker, or on all of a cluster.
    """
    one_target(cluster, address)
    password = _password(password, password_file) or ask_secret(f"user {username}", confirm=True)
    user = User(username=username, password=password, user_type=kind)
    return _done("create", await admin.access.create_user(user, cluster, address), username)


@admin_command(
    "updateUser",
    _USERNAME,
    text("-p", "--password", help="New password; - prompts for it."),
    _PASSWORD_FILE,
    _TYPE,
    text("-s", "--userStatus", "status", help="enable or disable."),
    BROKER,
    CLUSTER,
)
async def update(
    admin: Admin,
    *,
    username: str,
    password: str | None,
    password_file: str | None,
    kind: str | None,
    status: str | None,
    address: str | None,
    cluster: str | None,
) -> Shown:
    """Change a user's password, type or status."""
    one_target(cluster, address)
    password = _password(password, password_file)
    if password is None and kind is None and status is None:
        raise click.UsageError("nothing to change; give -p password, -t type or -s status")
    user = User(username=username, password=password, user_type=kind, user_status=status)
    return _done("update", await admin.access.update_user(user, cluster, address), username)


@admin_command("deleteUser", _USERNAME, BROKER, CLUSTER, asks="Delete user {username}?")
async def delete(admin: Admin, *, username: str, address: str | None, cluster: str | None) -> Shown:
    """Delete a user.

    From one broker, or from all of a cluster.
    """
    one_target(cluster, address)
    return _done("delete", await admin.access.delete_user(username, cluster, address), username)


@admin_command("getUser", _USERNAME, BROKER, CLUSTER, _SHOW)
async def get(
    admin: Admin, *, username: str, address: str | None, cluster: str | None, open_: bool
) -> Shown:
    """Show a user."""
    one_target(cluster, address)
    found = (await admin.access.user(username, cluster, address)).some()
    users = [user for user in found.values() if user is not None]
    if not users:
        raise Absent("user", username)
    lines = [_HEAD, _line(users[0], open_=open_)]
    return Shown(lines, _value(users[0], open_=open_), told(found.missing))


@admin_command(
    "listUser",
    text("-f", "--filter", "part", help="Only names that contain this."),
    BROKER,
    CLUSTER,
    _SHOW,
)
async def list_users(
    admin: Admin, *, part: str | None, address: str | None, cluster: str | None, open_: bool
) -> Shown:
    """List users.

    Of one broker, or of the first broker of a cluster that has any.
    """
    one_target(cluster, address)
    found = (await admin.access.users(part, cluster, address)).some()
    lines, data = [], []
    for each in found:
        if each.value:
            lines = [_HEAD, *(_line(user, open_=open_) for user in each.value)]
            if cluster is not None:
                lines.append(f"get user from {each.place.address} success.")
            data = [_value(user, open_=open_) for user in each.value]
            break
    return Shown(lines, data, told(found.missing))


@admin_command(
    "copyUser",
    text("-f", "--fromBroker", "source", help="Address of the broker to copy from.", required=True),
    text(
        "-t", "--toBroker", "destination", help="Address of the broker to copy to.", required=True
    ),
    text("-u", "--usernames", "names", help="Users, separated by commas.  [default: all]"),
)
async def copy(admin: Admin, *, source: str, destination: str, names: str | None) -> Shown:
    """Copy users from one broker to another."""
    copied = await admin.access.copy_users(source, destination, names_in(names))
    lines = [f"copy user of {name} from {source} to {destination} success." for name in copied]
    return Shown(lines, copied)
