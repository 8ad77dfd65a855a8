"""Programs in forks of one process, which has imported what most of them import.

python -m tests.docs.forks reads lines of JSON: the text of a program, the folder it runs in, and a
file for all that it prints. It runs one after the other as `python -c` would, and prints their exit
codes.
"""

import json
import os
import sys
import types

import pocketmq

IMPORTED = (pocketmq.Cluster, pocketmq.Producer, pocketmq.PushConsumer)
"""What is imported when it is first asked for, with all that it needs."""


def become(code: str, folder: str, printed: str) -> None:
    """Run a program in this process."""
    os.chdir(folder)
    nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(printed, os.O_WRONLY | os.O_CREAT)
    for target, source in enumerate((nothing, output, output)):
        os.dup2(source, target)
    program = types.ModuleType("__main__")
    sys.modules["__main__"] = program
    sys.argv = ["-c"]
    exec(compile(code, "<string>", "exec"), vars(program))


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            become(*json.loads(line))
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
