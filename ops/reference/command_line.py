"""The page of the command line: every command with its arguments, options and example."""

from collections.abc import Iterator
from enum import Enum
from typing import Any

import typer
import typer.main

from ops.cli import app
from ops.reference.markdown import code, page, table

INTRODUCTION = """Each command says the same with `--help`. Exit codes: 0 done; 1 the answer is no (a difference, a
fault that was missed); 2 something that only a person can mend, in one line on the standard error output. Values in
brackets are defaults that a setting gives: see [Configuration](configuration.md)."""
EXAMPLE = "Example:"
_NAMES = {"str": "text", "int": "integer", "float": "number"}


def command_line_page() -> str:
    """Every command of the tree, depth first, in the order of `--help`."""
    return page("Command line", INTRODUCTION, *_sections(typer.main.get_command(app), ("kappa",)))


def _sections(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    context = typer.Context(command, info_name=path[-1])
    names: list[str] = command.list_commands(context) if hasattr(command, "list_commands") else []
    if not names:
        yield "\n\n".join(_parts(command, path, context))
    for name in names:
        yield from _sections(command.resolve_command(context, [name])[1], (*path, name))


def _parts(command: Any, path: tuple[str, ...], context: typer.Context) -> Iterator[str]:
    yield f"## {' '.join(path)}"
    paragraphs = [" ".join(text.split()) for text in (command.help or "").split("\n\n")]
    yield from (text for text in paragraphs if text and not text.startswith(EXAMPLE))
    rows = [_row(parameter, context) for parameter in command.params if not parameter.hidden]
    if rows:
        yield table(("argument or option", "value", "default", "meaning"), rows)
    examples = [text.removeprefix(EXAMPLE).strip() for text in paragraphs if text.startswith(EXAMPLE)]
    if examples:
        yield "\n".join(["```", *examples, "```"])


def _row(parameter: Any, context: typer.Context) -> tuple[str, str, str, str]:
    is_argument = parameter.param_type_name == "argument"
    names = [parameter.name.upper()] if is_argument else [*parameter.opts, *parameter.secondary_opts]
    more = " (more than once)" if getattr(parameter, "multiple", False) or parameter.nargs == -1 else ""
    value = "" if getattr(parameter, "is_bool_flag", False) else _value(parameter.display_type(context)) + more
    return ", ".join(map(code, names)), value, _default(parameter), parameter.help or ""


def _value(kind: str) -> str:
    """Of `<text>` or `[one|other]`, as typer displays a type."""
    names = kind.strip("<>[]").removesuffix(" range").split("|")
    return _NAMES.get(names[0], names[0]) if len(names) == 1 else ", ".join(map(code, names))


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    return "" if value in (None, False, "") or callable(value) else code(value)
