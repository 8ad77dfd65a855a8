"""Certificates made for a test: a root, a server's, a client's, and those of another root."""

from pathlib import Path
from typing import NamedTuple

import trustme

from pocketmq.net import ClientAuth, ServerTls, Tls, TlsMode


class Certificates(NamedTuple):
    """PEM files of one root."""

    root: str
    server: str
    server_key: str
    client: str
    client_key: str

    def serving(self, mode: TlsMode = TlsMode.PERMISSIVE, auth: str = "none") -> ServerTls:
        """How a server speaks with them."""
        return ServerTls(
            mode=mode,
            cert=self.server,
            key=self.server_key,
            client_auth=ClientAuth(auth),
            trust="" if auth == "none" else self.root,
        )

    def asking(
        self, *, shown: bool = False, verify: bool = True, check_hostname: bool = True
    ) -> Tls:
        """How a client speaks with them; `shown`: with its own certificate."""
        return Tls(
            ca=self.root,
            cert=self.client if shown else "",
            key=self.client_key if shown else "",
            verify=verify,
            check_hostname=check_hostname,
        )

    def settings(self, mode: str = "permissive", auth: str = "none") -> dict[str, str]:
        """The same as settings of a broker or name server."""
        trusted = {} if auth == "none" else {"tls_server_trust_cert_path": self.root}
        return trusted | {
            "tls_server_mode": mode,
            "tls_server_cert_path": self.server,
            "tls_server_key_path": self.server_key,
            "tls_server_need_client_auth": auth,
        }


def make_certificates(directory: Path, host: str = "127.0.0.1") -> Certificates:
    """Write the files of a new root."""
    root = trustme.CA()
    directory.mkdir(parents=True, exist_ok=True)
    files = Certificates(
        *(str(directory / f"{name}.pem") for name in ("root", "server", "key", "client", "own"))
    )
    server, client = root.issue_cert(host, "localhost"), root.issue_cert("client@example.com")
    root.cert_pem.write_to_path(files.root)
    for issued, cert, key in (
        (server, files.server, files.server_key),
        (client, files.client, files.client_key),
    ):
        Path(cert).write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(key)
    return files
