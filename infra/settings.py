"""Settings of the embedded servers: environment variables with the prefix KAPPA_."""

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from infra.errors import UserError

# What a setting is called whose value nobody is to see: neither in a list of settings nor in a command line.
SECRET = re.compile(r"password|secret|token|api.?key|access.?key|account.?key|credential|jaas", re.IGNORECASE)

Port = Annotated[int, Field(ge=1, le=65535)]
Heap = Annotated[str, Field(pattern=r"^[1-9]\d*[mg]$")]


class InfraSettings(BaseSettings):
    """Folders, ports and memory of the embedded servers; `home` is the one folder for everything that is generated."""

    model_config = SettingsConfigDict(env_prefix="KAPPA_", extra="ignore")

    home: Path = Path(".kappa")  # the one folder for everything generated
    jars: Path | None = None  # the JVM parts, where several homes share them; by default in `home`
    secured: bool = False  # whether the servers ask who a client is; a home whose servers were stays so
    kafka_port: Port = 9092  # the first one; each broker takes two, a secured one three
    elasticsearch_port: Port = 9200  # and the next one
    brokers: Annotated[int, Field(ge=1, le=9)] = 1  # 3 survive the loss of one
    kafka_heap: Heap = "512m"  # Java heap of each broker
    elasticsearch_heap: Heap = "512m"  # Java heap


def load_settings(**flags: Any) -> InfraSettings:
    """The settings from the environment, overridden by flags.

    Raises:
        UserError: a value is invalid.
    """
    try:
        return InfraSettings(**flags)
    except ValidationError as error:
        raise UserError(describe(error, prefix="KAPPA_")) from error


def describe(error: ValidationError, prefix: str = "") -> str:
    """The first error of a pydantic validation in one line: field (after `prefix`), value, fix."""
    fault = error.errors()[0]
    message = fault["msg"].removeprefix("Value error, ")
    field = ".".join(str(part) for part in fault["loc"])
    if not field:
        return message
    if fault["type"] == "missing":
        return f"{field}: is missing"
    return f"{prefix}{field.upper() if prefix else field}={fault['input']!r}: {message}"
