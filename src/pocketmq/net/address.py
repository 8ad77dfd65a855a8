"""Addresses as people write them: `host:port`, `[v6]:port`, several joined by `;`."""

from typing import NamedTuple

from pocketmq.errors import InvalidInput


class Address(NamedTuple):
    """A host and a port; prints as RocketMQ writes it."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read `host:port`; raise `InvalidInput` if it is not one."""
    host, colon, port = text.strip().rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if not colon or not _is_host(host) or not _is_port(port):
        raise InvalidInput(f"{text!r} is not an address; write it as host:port")
    if ":" in host and not bracketed:
        raise InvalidInput(f"{text!r} is not an address; put IPv6 hosts in brackets, [::1]:9876")
    return Address(host, int(port))


def parse_addresses(text: str) -> list[Address]:
    """Read a list such as `a:9876;b:9876`, dropping repetitions; raise `InvalidInput` if empty."""
    if "," in text or (" " in text.strip() and ";" not in text):
        meant = ";".join(text.replace(",", " ").split())
        raise InvalidInput(f"{text!r} is not an address; join several by ';': {meant!r}")
    addresses = list(dict.fromkeys(parse_address(part) for part in text.split(";") if part.strip()))
    if not addresses:
        raise InvalidInput("no address given; write it as host:port, several joined by ';'")
    return addresses


def _is_host(host: str) -> bool:
    return bool(host) and host.isprintable() and not any(char in " []/;," for char in host)


def _is_port(port: str) -> bool:
    return port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535


def socket_name(name: object) -> str:
    """Write a socket's own or peer's name as host:port; what has none is empty."""
    if not isinstance(name, tuple) or len(name) < 2:
        return ""
    return str(Address(name[0], name[1]))
