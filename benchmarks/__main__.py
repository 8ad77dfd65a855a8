"""Run the benchmarks: `python -m benchmarks` for all, or name some.

Each prints a table with ratios against something plain measured in the same run: a ratio holds on a
busy or different machine, a time does not. Those of `_paths.BOTH` also run without the native core,
and show both costs.
"""

import sys
from importlib import import_module
from pathlib import Path

from benchmarks import _paths

NAMES = sorted(
    path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_")
)


def main() -> int:
    wanted = sys.argv[1:] or NAMES
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        print(f"benchmarks: no {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    sys.argv[1:] = []
    for name in wanted:
        print(f"\n== {name}", flush=True)
        if name in _paths.BOTH:
            _paths.compare(name)
        else:
            import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
