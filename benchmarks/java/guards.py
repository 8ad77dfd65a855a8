"""How clients speak to servers: in the clear or over TLS, with an account or without."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pocketmq as mq
from pocketmq.admin.access import rules_for
from pocketmq.protocol.requests.access import User

ROOT, ROOT_SECRET = "root", "the-secret-of-root"
USER, SECRET = "sender", "the-secret-of-sender"
_PROVIDERS = {
    f"{what}{part}": f"org.apache.rocketmq.auth.{what}.provider.{prefix}{what.title()}{part}"
    for what in ("authentication", "authorization")
    for part, prefix in (("Provider", "Default"), ("MetadataProvider", "Local"))
}


class Certificate(NamedTuple):
    """PEM files of a server: its root, its certificate, and its key as PKCS #8 too for Java."""

    root: str
    server: str
    key: str

    @classmethod
    def make(cls, directory: Path) -> "Certificate":
        import trustme

        made = cls(*(str(directory / f"{name}.pem") for name in ("root", "server", "key")))
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1", "localhost")
        authority.cert_pem.write_to_path(made.root)
        Path(made.server).write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        Path(made.key).write_bytes(_as_pkcs8(issued.private_key_pem.bytes()))
        return made


def _as_pkcs8(key: bytes) -> bytes:
    """Return a key in the one form that Java reads."""
    from cryptography.hazmat.primitives import serialization as forms

    private = forms.load_pem_private_key(key, None)
    form = forms.PrivateFormat.PKCS8
    return private.private_bytes(forms.Encoding.PEM, form, forms.NoEncryption())


class Guard(NamedTuple):
    """What servers ask of clients."""

    accounts: bool = False
    certificate: Certificate | None = None

    def broker_settings(self) -> dict[str, object]:
        """Return the settings of a broker that knows who one is, by RocketMQ's names."""
        if not self.accounts:
            return {}
        first = json.dumps({"username": ROOT, "password": ROOT_SECRET})
        asked = {"authenticationEnabled": "true", "authorizationEnabled": "true"}
        return {**asked, "initAuthenticationUser": first}

    def java_broker_settings(self) -> dict[str, object]:
        """Return the same with what only Java's broker must be told."""
        return {**self.broker_settings(), **(_PROVIDERS if self.accounts else {})}

    def java_server_properties(self, mode: str) -> dict[str, str]:
        """Return the system properties of a Java server."""
        if self.certificate is None:
            return {}
        return {
            "tls.test.mode.enable": "false",
            "tls.server.mode": mode,
            "tls.server.certPath": self.certificate.server,
            "tls.server.keyPath": self.certificate.key,
        }

    def java_client_properties(self) -> dict[str, str]:
        """Return the system properties of a Java client; `SideLoad` reads those of the account."""
        found = {"side.user": USER, "side.secret": SECRET} if self.accounts else {}
        if self.certificate is None:
            return found
        return found | {
            "tls.enable": "true",
            "tls.test.mode.enable": "false",
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": self.certificate.root,
        }

    def our_options(self, user: str = USER, secret: str = SECRET) -> dict[str, Any]:
        """Return the options of a client of ours."""
        found: dict[str, Any] = {}
        if self.accounts:
            found["credentials"] = mq.Credentials(access_key=user, secret_key=secret)
        if self.certificate is not None:
            found["tls"] = mq.Tls(ca=self.certificate.root)
        return found

    def admin_options(self) -> dict[str, Any]:
        return self.our_options(ROOT, ROOT_SECRET)

    def admit(self, admin: mq.Admin, address: str, topic: str) -> None:
        """Make the user that sends, who may send to a topic and nothing else."""
        if self.accounts:
            user = User(username=USER, password=SECRET, user_type="Normal")
            admin.access.create_user(user, address=address).all()
            rules = rules_for(f"User:{USER}", [f"Topic:{topic}"], ["Pub"], "Allow")
            admin.access.create_rules(rules, address=address).all()


OPEN = Guard()
