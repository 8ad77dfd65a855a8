"""Our client under load, told what to do by lines on its input; the twin of `SideLoad.java`.

python -m benchmarks.java._load NAME_SERVER GUARD

The guard is that of the servers, as JSON.
"""

import json
import sys
from collections.abc import Callable

import pocketmq as mq
from benchmarks.java._load_consumers import consume, listen, member, pop
from benchmarks.java._load_lines import say
from benchmarks.java._load_sends import batch, drip, fill, flight, one, submit, transact
from benchmarks.java.guards import Certificate, Guard

SENDING: dict[str, Callable[..., None]] = {
    "one": one,
    "batch": batch,
    "submit": submit,
    "transact": transact,
    "fill": fill,
    "drip": drip,
}
OTHERS: dict[str, Callable[..., None]] = {
    "flight": flight,
    "consume": consume,
    "pop": pop,
    "listen": listen,
    "member": member,
}


def main() -> None:
    namesrv = sys.argv[1]
    accounts, certificate = json.loads(sys.argv[2])
    guard = Guard(accounts, Certificate(*certificate) if certificate else None)
    options = guard.our_options()
    with mq.Producer(namesrv, group="side-load", send_timeout=30.0, **options) as producer:
        say("ready")
        while line := sys.stdin.readline():
            word, *more = line.split()
            if word in SENDING:
                SENDING[word](producer, *more)
            else:
                OTHERS[word](namesrv, options, *more)


if __name__ == "__main__":
    main()
