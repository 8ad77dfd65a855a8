"""The proxies that `benchmarks.grpc` measures: ours, ours without the native core, and Apache's."""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.ports import free_port

from benchmarks.java.processes import Child, until

POM = Path(__file__).parent / "java" / "proxy-pom.xml"
HEAP = "512m"
_SILENT = "<configuration><root level='OFF'/></configuration>"


class NoProxyError(Exception):
    """Apache's proxy cannot be measured; the message is why."""


class Proxy:
    """A proxy in front of a cluster, as a process that listens."""

    def __init__(self, child: Child, address: str) -> None:
        self.child = child
        self.address = address


def ours(namesrv: str, *, pure: bool = False) -> Proxy:
    command = [sys.executable, "-m", "pocketmq", "proxy", "-n", namesrv, "--port", "0"]
    variables = {"POCKETMQ_PURE": "1"} if pure else {}
    child = Child([*command, "--log-level", "error"], Path.cwd(), variables)
    (address,) = child.wait_for("ready")
    return Proxy(child, address)


def apaches(namesrv: str, jars: Path, home: Path) -> Proxy:
    """Start Apache's proxy in cluster mode."""
    port = free_port()
    settings = {
        "rocketMQClusterName": "DefaultCluster",
        "namesrvAddr": namesrv,
        "grpcServerPort": port,
        "remotingListenPort": free_port(),
        "localServeAddr": "127.0.0.1",
    }
    (home / "proxy.json").write_text(json.dumps(settings))
    classes = home / "classes"
    classes.mkdir()
    for name in ("logback.xml", "rmq.logback.xml", "rmq.proxy.logback.xml"):
        (classes / name).write_text(_SILENT)
    properties = [f"-Duser.home={home}", f"-Drocketmq.home.dir={home}"]
    command = ["java", f"-Xms{HEAP}", f"-Xmx{HEAP}", *properties, "-cp", f"{classes}:{jars}/*"]
    program = ["org.apache.rocketmq.proxy.ProxyStartup", "-pc", str(home / "proxy.json")]
    child = Child([*command, *program], home, {"RMQ_PROXY_HOME": str(home)})
    until(lambda: _listens(port), "Apache's proxy")
    return Proxy(child, f"127.0.0.1:{port}")


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.1).close()
    except OSError:
        return False
    return True


def jars() -> Path:
    """Return the directory of Apache's jars, filled now if it is not there; raises NoProxyError."""
    for tool, name in (("java", "JDK"), ("mvn", "Maven")):
        if shutil.which(tool) is None:
            raise NoProxyError(f"no {name}")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pocketmq" / "java"
    place = caches / f"proxy-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}"
    if place.is_dir():
        return place
    caches.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=caches) as filling:
        made = Path(filling) / "made"
        command = ["mvn", "--batch-mode", "--no-transfer-progress", "--quiet", "--file", str(POM)]
        command += ["dependency:copy-dependencies", f"-DoutputDirectory={made}"]
        if subprocess.run([*command, "-DincludeScope=runtime"], check=False).returncode:
            raise NoProxyError("Maven could not fetch it")
        made.rename(place)
    return place
