"""The commands that README, docs and the program itself show, looked up without being run."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from typer.main import get_command

from ops.cli import Commands, app

PAGES = ("*.md", "docs/**/*.md")
# Docstrings, which are the command line's help, and messages.
SOURCES = ("ops/**/*.py", "jobs/**/*.py", "connectors/**/*.py", "infra/**/*.py")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^ *Example: (.+)$", re.MULTILINE)
INLINE = re.compile(r"`((?:\.venv/bin/)?(?:kappa|make)\s[^`]+)`")
# Of a line in a block: perhaps a prompt and variables, then the command up to what the shell would read as its end.
LINE = re.compile(r"(?:^|&&|;)\s*(?:\$ )?(?:[A-Z_]+=\S+ )*((?:\.venv/bin/)?(?:kappa|make) .*?)(?=$| && |;| \|)")
TARGET = re.compile(r"^([a-z][a-z0-9-]*):", re.MULTILINE)
OMITTED = {"...", "…", "[...]"}


@dataclass(frozen=True)
class Shown:
    """A command as a page shows it."""

    page: str
    text: str

    def fault(self) -> str | None:
        """What is wrong with it, or None."""
        program, *arguments = _words(self.text)
        found = _fault_of_make(arguments) if program == "make" else _fault_of_kappa(arguments)
        return found and f"{self.page}: {self.text}: {found}"


def shown(root: Path = Path()) -> Iterator[Shown]:
    """The commands of all pages, and those in the text of all sources."""
    for pattern in PAGES:
        for page in sorted(root.glob(pattern)):
            yield from commands_of(page.read_text(), str(page.relative_to(root)))
    for pattern in SOURCES:
        for source in sorted(root.glob(pattern)):
            text = source.read_text()
            examples = "".join(f"`{example}` " for example in EXAMPLE.findall(text))
            yield from commands_of(examples + text, str(source.relative_to(root)))


def commands_of(text: str, page: str) -> Iterator[Shown]:
    """The commands that a page's Markdown holds."""
    for block in FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            yield from (Shown(page, command.strip()) for command in LINE.findall(line))
    for code in INLINE.findall(FENCE.sub("", text)):
        yield from (Shown(page, command.strip()) for command in LINE.findall(" ".join(code.split())))


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # an apostrophe of the text
        words = text.partition(" #")[0].split()
    return [Path(words[0]).name, *words[1:]]


@cache
def _makefile() -> str:
    return Path("Makefile").read_text()


def _fault_of_make(arguments: list[str]) -> str | None:
    targets = set(TARGET.findall(_makefile()))
    for word in arguments:
        name, is_variable, _ = word.partition("=")
        if is_variable and not re.search(rf"\b{name}\b", _makefile()):
            return f"the Makefile has no variable {name}"
        if not is_variable and not word.startswith("-") and word not in targets | OMITTED:
            return f"there is no target {word}"
    return None


@cache
def _command(name: str) -> Any:
    return Commands.lazy[name].load(name) if name in Commands.lazy else None


def _fault_of_kappa(arguments: list[str]) -> str | None:
    command, rest = get_command(app), list(arguments)
    while rest and not rest[0].startswith("-") and (subcommands := _subcommands(command)):
        names = rest.pop(0)
        if names in OMITTED:
            return None
        known = [subcommands(name) for name in names.split("|")]
        if None in known:
            return f"there is no command {names}"
        command = known[-1]
    return _fault_of_options(command, rest)


def _subcommands(command: Any) -> Any:
    """What gives a group's command by its name; None for what is no group."""
    if isinstance(command, Commands):
        return _command
    return getattr(command, "commands", {}).get if hasattr(command, "commands") else None


def _fault_of_options(command: Any, arguments: list[str]) -> str | None:
    known = {
        "--help",
        *(option for parameter in command.params for option in parameter.opts + parameter.secondary_opts),
    }
    given = [word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word)]
    unknown = [option for option in given if option not in known | {"--help"}]
    return f"there is no option {unknown[0]}" if unknown else None
