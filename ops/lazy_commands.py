"""A command group that imports a command's module only when that command is used.

`kappa --help` would otherwise load Spark, pandas and every client library to print twenty lines.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group


@dataclass(frozen=True)
class LazyCommand:
    """A command that the group lists before its module is loaded."""

    module: str
    help: str  # its line in the list of commands
    app: str = "app"

    def load(self, name: str) -> Any:
        """The command (or group of commands) itself, as typer builds it."""
        app: typer.Typer = getattr(import_module(self.module), self.app)
        holder = typer.Typer(add_completion=False)
        # A group takes the name; a single command is merged into the holder and brings its own.
        holder.add_typer(app, name=name if app.registered_callback or len(app.registered_commands) > 1 else None)
        return get_group(holder).commands[name]


class LazyGroup(TyperGroup):
    """Lists its commands by name and help, and loads the one that is called."""

    lazy: ClassVar[Mapping[str, LazyCommand]] = {}

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """The names, in the order of the declaration."""
        return list(self.lazy)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        """A placeholder with the help text, or None for an unknown name."""
        declared = self.lazy.get(cmd_name)
        return declared and TyperCommand(cmd_name, help=declared.help)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        """The command that the arguments name, loaded, with what is left of them."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, self.lazy[name].load(name) if name else None, rest
