"""How a command connects to a cluster: as which user, and whether over TLS."""

import sys
from typing import Any, Self

import click
import msgspec

from pocketmq.cli.commands import all_of
from pocketmq.cli.secret_input import ask_secret, read_secret
from pocketmq.client.options import Credentials
from pocketmq.net import Tls

TO = "to_"
"""What the parameters of a target's options begin with."""

entry_options = all_of(
    click.option(
        "--access-key",
        metavar="USER",
        envvar="POCKETMQ_ACCESS_KEY",
        help="User name.  [default: $POCKETMQ_ACCESS_KEY]",
    ),
    click.option(
        "--secret-key",
        metavar="SECRET",
        envvar="POCKETMQ_SECRET_KEY",
        help="Password; - prompts for it.  [default: $POCKETMQ_SECRET_KEY]",
    ),
    click.option(
        "--secret-key-file",
        metavar="FILE",
        default="",
        help="File whose first line is the password.",
    ),
    click.option("--tls", "use_tls", is_flag=True, help="Use TLS; the options below imply it."),
    click.option(
        "--tls-ca",
        metavar="FILE",
        default="",
        help="CA certificates to verify servers with, PEM.  [default: the system's]",
    ),
    click.option("--tls-cert", metavar="FILE", default="", help="Client certificate, PEM."),
    click.option(
        "--tls-key",
        metavar="FILE",
        default="",
        help="Its key, PEM, if not in the same file.",
    ),
    click.option(
        "--tls-server-name",
        metavar="NAME",
        default="",
        help="Name in the servers' certificates.  [default: the host]",
    ),
    click.option("--tls-no-verify", is_flag=True, help="Skip certificate verification (insecure)."),
)
"""The options that an `Entry` is made of."""


def target_entry_options(command: Any) -> Any:
    """Add the same options once more, for the cluster that a command writes to."""

    def holder() -> None: ...

    for option in reversed(entry_options(holder).__click_params__):
        name = option.opts[0].removeprefix("--")
        variable = f"POCKETMQ_TO_{name.upper().replace('-', '_')}" if option.envvar else None
        shown = f"  [default: ${variable}]" if variable else ""
        command = click.option(
            f"--to-{name}",
            TO + option.name,
            is_flag=option.is_flag,
            default=option.default,
            metavar=option.metavar,
            envvar=variable,
            help=f"Like --{name}, for the target.{shown}",
        )(command)
    return command


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The values of these options."""

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
        """Take them out of all the options of a command; with `TO`, the target's.

        On a terminal, a missing password is prompted for. Raises `click.UsageError`.
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
        """Return this user or else the other's, and this TLS or else the other's."""
        user = self if self.credentials is not None else other
        tls = self if self.tls is not None else other
        return msgspec.structs.replace(tls, access_key=user.access_key, secret_key=user.secret_key)

    @property
    def credentials(self) -> Credentials | None:
        """The user, None without one. Raises `InvalidInput` if name or password is missing."""
        if not self.access_key and not self.secret_key:
            return None
        return Credentials(access_key=self.access_key or "", secret_key=self.secret_key or "")

    @property
    def tls(self) -> Tls | None:
        """How to use TLS, None if no option asks for it."""
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
