"""`python -m pocketmq.cli` is the `pocketmq` command."""

from pocketmq.cli import main

main()
