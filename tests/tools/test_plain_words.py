"""Phrases that have a plainer word are found in the strings users read, and nowhere else."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "plain_words.py"


def run(root: Path, *options: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, TOOL, "--root", root, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("path", "code", "phrase"),
    [
        ("client/a.py", 'logger.warning("nobody answers %s", peer)', "nobody"),
        ("client/a.py", 'self._log.info(f"{peer} goes on")', "goes on"),
        ("client/a.py", 'raise ValueError(f"{text} is no address")', "is no address"),
        ("client/a.py", 'raise make("messages " "under  way")', "under way"),
        (
            "client/a.py",
            'option("--count", help="Stop after so many messages.")',
            "so many messages",
        ),
        ("client/a.py", 'click.echo("Believe any server")', "Believe"),
        ("client/a.py", 'ui.label("Look again")', "Look again"),
        ("cli/a.py", 'TABLE = {"up": "A cluster, usually of one broker."}', "usually"),
        ("dashboard/a.py", 'button("Go on", submit)', "Go on"),
        ("dashboard/a.py", 'text = "Members can join it at once."', "at once"),
        ("client/a.py", 'raise ValueError("too many calls at once")', "at once"),
        ("errors/a.py", 'def text(self):\n    return f"{self.peer} was told"', "told"),
        ("model/a.py", '"""Give the queues."""', "Give"),
        ("model/a.py", 'def f():\n    """Tell whether it is there."""', "Tell whether"),
        ("model/a.py", 'class A:\n    """Have X do it."""', "Have"),
        ("model/a.py", 'class A:\n    """What nobody owns."""', "nobody"),
    ],
)
def test_a_phrase_in_a_string_for_users_is_found(
    path: str, code: str, phrase: str, tmp_path: Path
) -> None:
    write(tmp_path, f"src/pocketmq/{path}", f"\n{code}\n")
    status, lines = run(tmp_path)
    assert status == 1
    [line] = lines
    last = code.count("\n") + 2
    assert line.startswith(f'src/pocketmq/{path}:{last}: "{phrase}" -> write "')


def test_a_phrase_in_prose_is_found_also_over_the_end_of_a_line(tmp_path: Path) -> None:
    write(tmp_path, "README.md", "# Title\n\nClients go\non.\n")
    write(tmp_path, "docs/how-to/a.md", "| a | messages given back |\n")
    assert run(tmp_path) == (
        1,
        [
            'README.md:3: "go on" -> write "continue, resume"',
            'docs/how-to/a.md:1: "given back" -> write "requeued, released, returned"',
        ],
    )


def test_either_part_can_be_checked_alone(tmp_path: Path) -> None:
    write(tmp_path, "README.md", "Nobody\n")
    write(tmp_path, "src/pocketmq/a.py", '"""Give it."""\n')
    sources = ['src/pocketmq/a.py:1: "Give" -> write "Return, Yield, Build, Read"']
    pages = ['README.md:1: "Nobody" -> write "no client, a peer, every member (name it)"']
    assert run(tmp_path, "--src") == (1, sources)
    assert run(tmp_path, "--docs") == (1, pages)
    assert run(tmp_path, "--src", "--docs") == run(tmp_path) == (1, pages + sources)


GOOD_SOURCE = '''
"""Return the queues.

Further lines of a docstring may say what nobody knows.
"""
# Nor are comments read: nobody, told, under way.
LIMIT = 3
"""What was told: the documentation of a constant."""
names = {"nobody": 1}
logger.warning("pull failed: topic=%s; retrying in %d s", "untold", "nobody-else")
raise ValueError("there is no address; the next time is unusual, and goes one further")
'''
GOOD_PAGE = """
# Resume

Members continue, many at once. A log line was `nobody told me`, see [there](nobody.md).

```
nobody goes on
```

   ```python
   # nobody
   ```

## Words

| we write | not |
|---|---|
| in flight | under way |

## Next

Graceful shutdown.
"""


def test_good_text_passes(tmp_path: Path) -> None:
    write(tmp_path, "src/pocketmq/client/a.py", GOOD_SOURCE)
    write(tmp_path, "CONTRIBUTING.md", GOOD_PAGE)
    assert run(tmp_path) == (0, [])
