"""`kappa settings`: every setting, with the value that a job would run with."""

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import SecretStr
from pydantic_settings import BaseSettings
from rich.console import Console
from rich.table import Table

from connectors.kafka.security import SECRETS, KafkaSecurity
from infra.settings import SECRET

app = typer.Typer()
MASK = "********"
_IN_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")


@dataclass(frozen=True)
class Setting:
    """A setting: its environment variable, its value as text, where the value comes from, type and default."""

    variable: str
    value: str
    source: str  # environment | file | default
    type: str
    default: str


@app.command("settings")
def show_settings(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List every setting with its value, where that comes from, type and default. Secrets are masked.

    Example: KAPPA_TRIGGER_SECONDS=5 kappa settings --json
    """
    found = list(catalogue())
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=1))
        return
    table = Table("variable", "value", "source", "type", "default", box=None, header_style="bold")
    for one in found:
        table.add_row(one.variable, one.value, one.source, one.type, one.default)
    Console(width=None if sys.stdout.isatty() else 220).print(table, markup=False)


def catalogue() -> Iterator[Setting]:
    """The settings of the runtime, of the embedded servers and of each job, each variable once.

    Raises UserError naming the first one that can't be used.
    """
    seen: set[str] = set()
    for settings in _all():
        for name in type(settings).model_fields:
            one = _described(settings, name)
            if one.variable not in seen:
                seen.add(one.variable)
                yield one


def _all() -> Iterator[BaseSettings]:
    from infra.settings import load_settings as load_infra_settings
    from jobs.runtime.job_settings import load_job_settings
    from jobs.runtime.settings import load_settings
    from jobs.table import JOBS

    yield load_settings()
    yield load_infra_settings()
    for job in JOBS:
        if own := load_job_settings(job):
            yield own


def _described(settings: BaseSettings, name: str) -> Setting:
    field = type(settings).model_fields[name]
    variable = f"{settings.model_config.get('env_prefix', '')}{name}".upper()
    default = field.get_default(call_default_factory=True, validated_data={})
    value = getattr(settings, name)
    return Setting(
        variable, shown(name, value), _source(settings, variable), _type_name(field.annotation), shown(name, default)
    )


def _source(settings: BaseSettings, variable: str) -> str:
    if variable in os.environ:
        return "environment"
    folder = os.environ.get(SECRETS) if isinstance(settings, KafkaSecurity) else None
    return "file" if folder and (Path(folder) / variable.lower()).exists() else "default"


def _type_name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else re.sub(r"\b\w+\.", "", str(annotation))


def shown(name: str, value: Any) -> str:
    """A value as text with secrets masked, also those within URLs and in the entries of a map."""
    if value is None or value in ({}, ()):
        return ""
    if isinstance(value, SecretStr) or SECRET.search(name):
        return MASK
    if isinstance(value, dict):
        return json.dumps({key: shown(key, entry) for key, entry in value.items()})
    if isinstance(value, BaseSettings) or hasattr(value, "model_dump_json"):
        return str(value.model_dump_json(exclude_defaults=True))
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return _IN_URL.sub(MASK, str(value))
