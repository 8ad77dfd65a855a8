"""Scenarios a Java name server went through, and how its answers compare with ours."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from pocketmq.protocol import Command
from pocketmq.protocol.fastjson import loads

_FILE = Path(__file__).parents[1] / "vectors" / "java-nameserver.jsonl"
_BARE_KEY = re.compile(rb"[{,]\d+:")
_NOISE = re.compile(r"\nSee \S+ for further details\.$|^not set any response code$")

Scenario = dict[str, Any]


def scenarios() -> list[Scenario]:
    with _FILE.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def request_of(step: Scenario) -> Command:
    request = Command.request(step["code"], 1, step["ext"] or None, body_of(step))
    return msgspec.structs.replace(request, version=step["version"])


def body_of(part: Scenario) -> bytes:
    if "bodyHex" in part:
        return bytes.fromhex(part["bodyHex"])
    return str(part.get("body", "")).encode()


def essence(
    code: int, remark: str | None, ext: dict[str, str], body: bytes, *, request: int
) -> dict[str, Any]:
    """Return what clients can tell apart: neither order nor remarks that say nothing."""
    return {
        "code": code,
        "remark": _NOISE.sub("", remark or ""),
        "ext": ext,
        "bare": bool(_BARE_KEY.search(body)),
        "body": _plain(loads(body), request) if body else None,
    }


def _plain(body: Any, request: int) -> Any:
    if request == 105:
        for name in ("brokerDatas", "queueDatas"):
            body[name] = sorted(body[name], key=lambda each: str(each["brokerName"]))
        body["brokerDatas"] = [each for each in body["brokerDatas"] if each["brokerAddrs"]]
    if request == 106:
        # Java keeps the names of brokers it refused, without an address.
        body["brokerAddrTable"] = {
            name: data for name, data in body["brokerAddrTable"].items() if data["brokerAddrs"]
        }
        clusters = {
            cluster: sorted(name for name in names if name in body["brokerAddrTable"])
            for cluster, names in body["clusterAddrTable"].items()
        }
        body["clusterAddrTable"] = {name: names for name, names in clusters.items() if names}
    if "topicList" in body:
        body["topicList"] = sorted(body["topicList"])
        body["brokerAddr"] = "brokerAddr" in body  # any broker's will do
    return body
