"""Clusters of both makes: a Java name server or ours, with Java brokers or ours on it."""

import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.interop.java_broker import JavaBroker, Registering
from tests.interop.jvm import Jars, Process, broker, nameserver, wait_until
from tests.ports import free_port
from tests.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
# Name servers, then brokers.
ROWS = {
    "java-java": ("java", "java"),
    "ours-ours": ("ours", "ours"),
    "java-ours": ("java", "ours"),
    "ours-java": ("ours", "java"),
}


class Row:
    """A cluster; its brokers can be killed and come back with what they stored."""

    def __init__(
        self,
        jars: Jars,
        home: Path,
        stack: ExitStack,
        kind: tuple[str, str],
        *names: str,
        **settings: object,
    ) -> None:
        self._jars = jars
        self._home = home
        self._stack = stack
        self._names, self._brokers = kind
        self._settings = settings
        self.address = self._start_nameserver()
        self._ports = {name: free_port() for name in names}
        self._running = {name: self._start(name) for name in names}
        self._made = JavaBroker(self.address, self.addresses)
        self._wait_for_all("the brokers to register")

    @property
    def addresses(self) -> dict[str, str]:
        """The brokers' addresses by their names."""
        return {name: f"127.0.0.1:{port}" for name, port in self._ports.items()}

    def create_topic(self, topic: str, queues: int) -> None:
        """Make a topic on every broker; clients find it when this returns."""
        self._made.create_topic(topic, queues)

    def kill(self, name: str) -> None:
        """End a broker with no word of farewell."""
        running = self._running.pop(name)
        if isinstance(running, Process):
            running.kill()
        else:
            running.process.kill()
            running.process.wait()

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a broker."""
        running = self._running[name]
        child = running.child if isinstance(running, Process) else running.process
        child.send_signal(number)

    def restart(self, name: str) -> None:
        """Start a broker that was killed, on its files."""
        self._running[name] = self._start(name)
        self._wait_for_all(f"{name} to register")

    def _wait_for_all(self, what: str) -> None:
        registering = Registering(self._made)
        java = {name: each for name, each in self._running.items() if isinstance(each, Process)}

        def all_there() -> bool:
            for running in java.values():
                running.check_alive()
            return registering.done(self.addresses[name] for name in java)

        wait_until(all_there, what, pause=0.1)

    def _start_nameserver(self) -> str:
        if self._names == "ours":
            server = ServerProcess("namesrv", "--port", "0", "--host", "127.0.0.1")
            return self._stack.enter_context(server).namesrv
        port = free_port()
        (self._home / "names").mkdir()
        self._stack.enter_context(nameserver(self._jars, self._home / "names", port))
        return f"127.0.0.1:{port}"

    def _start(self, name: str) -> Process | ServerProcess:
        home, port = self._home / name, self._ports[name]
        home.mkdir(exist_ok=True)
        if self._brokers == "java":
            own: dict[str, object] = {"brokerName": name, "brokerClusterName": "C"}
            own |= {"listenPort": port, **self._settings}
            return self._stack.enter_context(broker(self._jars, home, self.address, **own))
        words = ["--namesrv", self.address, "--name", name, "--cluster", "C", "--port", str(port)]
        for key, value in self._settings.items():
            words += ["--set", f"{key}={value}"]
        command = (sys.executable, "-m", "tests.interop.quick_locks", "broker")
        words += ["--data", str(home / "ours")]
        return self._stack.enter_context(ServerProcess(*words, command=command, cwd=ROOT))
