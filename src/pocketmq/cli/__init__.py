"""The `pocketmq` command."""


def main() -> None:
    """Run the command line."""
