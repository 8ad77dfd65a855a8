"""`free_port` gives no port twice while a server that was told it may still be starting."""

import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from tests.ports import FIRST, LAST, STEP, free_port

ASK = "import sys; from pathlib import Path; from tests.ports import free_port\n"
ASK += "print(*[free_port(Path(sys.argv[1])) for _ in range(200)])"


def test_processes_that_ask_at_the_same_time_are_given_different_ports(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ASK, str(tmp_path / "taken")]
    root = Path(__file__).parents[1]
    asking = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) for _ in range(3)]
    given = [int(port) for each in asking for port in each.communicate(timeout=60)[0].split()]
    assert [each.returncode for each in asking] == [0, 0, 0]
    assert len(given) == 600
    assert min(after - before for before, after in pairwise(sorted(given))) >= STEP


def test_a_taken_port_is_left_out_and_the_last_is_followed_by_the_first(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("no number")
    assert FIRST <= free_port(taken) < LAST
    taken.write_text(str((FIRST + LAST) // 2))  # not near the last, which the first follows
    with socket.socket() as server:
        busy = free_port(taken)
        server.bind(("127.0.0.1", busy))
        taken.write_text(str(busy - STEP))
        assert free_port(taken) > busy
    taken.write_text(str(LAST))
    assert FIRST <= free_port(taken) < FIRST + 100 * STEP
