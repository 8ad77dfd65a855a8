"""How a command is let into a cluster: as which user, and over TLS or not."""

import sys
from typing import Any, Self

import click
import msgspec

from pocketmq.cli.secret_input import ask_secret, read_secret
from pocketmq.client.options import Credentials
from pocketmq.net import Tls

TO = "to_"
"""What the names of a target's options begin with."""

_OPTIONS = (
    click.option(
        "--access-key", envvar="POCKETMQ_ACCESS_KEY", help="User; or POCKETMQ_ACCESS_KEY."
    ),
    click.option(
        "--secret-key",
        envvar="POCKETMQ_SECRET_KEY",
        help="Its password, - to be asked for it; or POCKETMQ_SECRET_KEY.",
    ),
    click.option(
        "--secret-key-file",
        metavar="FILE",
        default="",
        help="File whose first line is the password.",
    ),
    click.option("--tls", "use_tls", is_flag=True, help="Speak TLS; the others below imply it."),
    click.option(
        "--tls-ca", metavar="FILE", default="", help="Roots of servers' certificates, PEM."
    ),
    click.option("--tls-cert", metavar="FILE", default="", help="Certificate to show, PEM."),
    click.option(
        "--tls-key", metavar="FILE", default="", help="Its key, PEM; if not in the same file."
    ),
    click.option(
        "--tls-server-name",
        metavar="NAME",
        default="",
        help="Name in servers' certificates, if not the host's.",
    ),
    click.option(
        "--tls-no-verify", is_flag=True, help="Believe any server: anybody can listen in."
    ),
)


def entry_options(command: Any) -> Any:
    """Add the options that an `Entry` is made of."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def target_entry_options(command: Any) -> Any:
    """Add the same once more, for the cluster that a command writes to."""

    def holder() -> None: ...

    for option in reversed(entry_options(holder).__click_params__):
        name = option.opts[0].removeprefix("--")
        variable = f"POCKETMQ_TO_{name.upper().replace('-', '_')}" if option.envvar else None
        command = click.option(
            f"--to-{name}",
            TO + option.name,
            is_flag=option.is_flag,
            default=option.default,
            metavar=option.metavar,
            envvar=variable,
            help=f"As --{name}, for the target." + (f" Or {variable}." if variable else ""),
        )(command)
    return command


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What was given of these options."""

    access_key: str | None
    secret_key: str | None
    use_tls: bool
    tls_ca: str
    tls_cert: str
    tls_key: str
    tls_server_name: str
    tls_no_verify: bool

    @classmethod
    def taken_from(cls, given: dict[str, Any], prefix: str = "") -> Self:
        """Take them out of all the options that a command was given; `TO` for the target's.

        A user without a password is asked for it on a terminal. Raises `click.UsageError`.
        """
        dashed = prefix.replace("_", "-")
        secret = read_secret(
            f"{prefix}secret_key",
            given[f"{prefix}secret_key"],
            given.pop(f"{prefix}secret_key_file"),
            flag=f"--{dashed}secret-key",
            safe=f"--{dashed}secret-key-file",
        )
        user = given[f"{prefix}access_key"]
        if user and not secret and sys.stdin.isatty():
            secret = ask_secret(f"user {user}")
        given[f"{prefix}secret_key"] = secret
        return cls(**{name: given.pop(prefix + name) for name in cls.__struct_fields__})

    def or_else(self, other: "Entry") -> "Entry":
        """Give this user or else the other's, and this TLS or else the other's."""
        user = self if self.credentials is not None else other
        tls = self if self.tls is not None else other
        return msgspec.structs.replace(tls, access_key=user.access_key, secret_key=user.secret_key)

    @property
    def credentials(self) -> Credentials | None:
        """The user. Raises `InvalidInput` if half of it is missing."""
        if not self.access_key and not self.secret_key:
            return None
        return Credentials(access_key=self.access_key or "", secret_key=self.secret_key or "")

    @property
    def tls(self) -> Tls | None:
        """How to speak TLS, None if nothing of it was asked for."""
        files = (self.tls_ca, self.tls_cert, self.tls_key, self.tls_server_name)
        if not (self.use_tls or self.tls_no_verify or any(files)):
            return None
        return Tls(
            ca=self.tls_ca,
            cert=self.tls_cert,
            key=self.tls_key,
            server_name=self.tls_server_name,
            verify=not self.tls_no_verify,
        )
