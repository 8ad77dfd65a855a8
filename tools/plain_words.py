"""Report phrases that ordinary engineers stumble over, in user-facing strings and in the docs.

The table below is the whole rule: few phrases, each certain to have a plainer word. CONTRIBUTING
(## Words) has the longer list for writers.

    python tools/plain_words.py            # both
    python tools/plain_words.py --src      # logs, errors, help, labels, docstrings' first lines
    python tools/plain_words.py --docs     # the prose of the README and the docs, without code
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

ANYWHERE = {
    r"nobody|somebody|anybody|everybody": "no client, a peer, every member (name it)",
    r"whoever|whom": "the caller, the client (name it)",
    r"told": "notified, logged, passed, set",
    r"under way": "in flight",
    r"pass(es|ed|ing)? over": "skip, ignore",
    r"comes? again|later again": "is redelivered, is retried",
    r"given back": "requeued, released, returned",
    r"believ(e|es|ed)": "verify, verified",
    r"(stop|end)(s|ped|ed)? in order|in good order": "shut down gracefully",
    r"bears? (it|that|this)( twice)?": "is idempotent",
    r"looks? again": "refresh, poll",
    r"signs? of life": "heartbeat",
    r"stays? away": "does not respond, is missing",
    r"for so long": "for this time, for N s",
    r"anew": "again",
    r"for want of": "because there is no",
    r"in silence": "silently",
    r"unasked": "without a request",
    r"mends?|mended": "repair, fix",
}
"""Phrases that have a plainer word wherever a reader meets them."""

IN_TEXTS = ANYWHERE | {
    r"go(es|ing)? on|went on": "continue, resume",
    r"so (many|much) (messages|times|bytes|queues|seconds)": "N …, the number of …",
    r"wish|wishes|wished": "request",
    r"strangers?": "an unauthenticated peer",
    r"moments?": "time, timestamp",
    r"(?<!there\s)(is|are) no (address|number|port|name|topic|group|duration|size|object)": (
        "is not a …, is invalid"
    ),
}
"""Those in log lines, errors, labels and the docs."""

IN_STRINGS = IN_TEXTS | {r"at once": "immediately, at the same time, together"}
"""Those in log lines, errors and labels. The docs may say that many are in flight at once."""

IN_HELP = IN_STRINGS | {r"usually": "[default: …]", r"say so with": "pass"}
"""Those in the help of commands."""

AT_THE_START = {
    r"gives?(?! up)": "Return, Yield, Build, Read",
    r"(tell|say)s? whether": "Return whether",
    r"(tell|say)s?": "Return, Log, Report",
    r"have": "the plain verb",
}
"""First words of a docstring."""


class Finding(NamedTuple):
    """A phrase, where it stands and what to write instead."""

    path: Path
    line: int
    phrase: str
    instead: str

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: "{self.phrase}" -> write "{self.instead}"'


class Phrases:
    """One table, as one pattern: a text is searched once, however long the table is."""

    def __init__(self, table: dict[str, str], *, start: bool = False) -> None:
        self._instead = list(table.values())
        spaced = (phrase.replace(" ", r"\s+") for phrase in table)
        groups = "|".join(f"(?P<_{number}>{phrase})" for number, phrase in enumerate(spaced))
        before, after = (r"\A\s*", r"\b") if start else (r"(?<![\w-])", r"(?![\w-])")
        self._pattern = re.compile(f"{before}(?:{groups}){after}", re.IGNORECASE)

    def occur_in(self, text: str) -> bool:
        """Return whether any phrase stands in the text."""
        return self._pattern.search(text) is not None

    def found_in(self, text: str) -> Iterator[tuple[int, str, str]]:
        """Yield the position of each phrase, the phrase, and what to write instead."""
        for match in self._pattern.finditer(text):
            number = next(
                int(name[1:]) for name, part in match.groupdict().items() if part is not None
            )
            yield match.start(), " ".join(match.group().split()), self._instead[number]


DOCSTRING = Phrases(ANYWHERE)
TEXT = Phrases(IN_TEXTS)
STRING = Phrases(IN_STRINGS)
HELP = Phrases(IN_HELP)
SUMMARY = Phrases(AT_THE_START, start=True)
SUMMARY_SOMEWHERE = re.compile(rf'"""\s*(?:{"|".join(AT_THE_START)})\b', re.IGNORECASE)


# Strings in sources


PAGES = {"cli": HELP, "dashboard": STRING, "errors": STRING}
"""Packages in which every string is a text for users: help, labels, errors."""
LOGGER = re.compile(r"_?log(ger)?", re.IGNORECASE)
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
HELP_WORDS = {"help", "short_help", "epilog"}

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def source_findings(path: Path, package: str) -> Iterator[Finding]:
    """Yield the findings in the user-facing strings of one Python file of a package."""
    text = path.read_text()
    if not HELP.occur_in(text) and not SUMMARY_SOMEWHERE.search(text):
        return  # most files: parsing is what takes long
    everywhere = PAGES.get(package)
    documentation: set[ast.AST] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _in_docstring(path, node, HELP if everywhere is HELP else DOCSTRING)
        elif isinstance(node, ast.Raise) and node.exc is not None:
            yield from _in_strings(path, ast.walk(node.exc), STRING)
        elif isinstance(node, ast.Call):
            yield from _in_call(path, node)
        elif isinstance(node, ast.Expr):
            documentation.add(node.value)  # walked later than its statement
        elif everywhere is not None and node not in documentation:
            yield from _in_strings(path, (node,), everywhere)


def _in_docstring(path: Path, node: Documented, phrases: Phrases) -> Iterator[Finding]:
    text = ast.get_docstring(node, clean=False) or ""
    summary = text.lstrip().partition("\n")[0]
    for each in (SUMMARY, phrases):
        for _, phrase, instead in each.found_in(summary):
            yield Finding(path, node.body[0].lineno, phrase, instead)


def _in_call(path: Path, call: ast.Call) -> Iterator[Finding]:
    names = _names(call.func)
    logs = len(names) > 1 and names[-1] in LEVELS and LOGGER.fullmatch(names[-2])
    phrases = HELP if names[0] == "click" else STRING if logs or names[0] == "ui" else None
    for argument in call.args if phrases else ():
        yield from _in_strings(path, ast.walk(argument), phrases or STRING)
    for keyword in call.keywords:
        if keyword.arg in HELP_WORDS:
            yield from _in_strings(path, ast.walk(keyword.value), HELP)


def _names(node: ast.expr) -> list[str]:
    """Return the parts of a dotted name."""
    if isinstance(node, ast.Attribute):
        return [*_names(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else [""]


def _in_strings(path: Path, nodes: Iterable[ast.AST], phrases: Phrases) -> Iterator[Finding]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for _, phrase, instead in phrases.found_in(node.value):
                yield Finding(path, node.lineno, phrase, instead)


# Prose


CODE = re.compile(
    r"^[ ]*```.*?^[ ]*```[ ]*$"  # a block
    r"|`[^`\n]+`"  # a word
    r"|\]\([^)\n]*\)"  # where a link leads
    r"|^## Words\n.*?(?=^## |\Z)",  # the list of phrases itself
    re.MULTILINE | re.DOTALL,
)


def prose_findings(path: Path) -> Iterator[Finding]:
    """Yield the findings in one page, outside of its code."""
    text = CODE.sub(lambda match: re.sub(r"[^\n]", "\0", match.group()), path.read_text())
    for at, phrase, instead in TEXT.found_in(text):
        yield Finding(path, text.count("\n", 0, at) + 1, phrase, instead)


def main() -> int:
    """Print the findings; fail if there are any."""
    parser = argparse.ArgumentParser(description="Report phrases that have a plainer word.")
    parser.add_argument("--src", action="store_true", help="check only strings in src/pocketmq")
    parser.add_argument("--docs", action="store_true", help="check only the README and the docs")
    parser.add_argument("--root", type=Path, default=ROOT, help="the clone [default: this one]")
    wanted = parser.parse_args()
    findings: set[Finding] = set()
    if wanted.src or not wanted.docs:
        package = wanted.root / "src" / "pocketmq"
        for path in package.rglob("*.py"):
            findings.update(source_findings(path, path.relative_to(package).parts[0]))
    if wanted.docs or not wanted.src:
        for path in (*wanted.root.glob("*.md"), *(wanted.root / "docs").rglob("*.md")):
            findings.update(prose_findings(path))
    for finding in sorted(findings):
        print(finding._replace(path=finding.path.relative_to(wanted.root)))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
