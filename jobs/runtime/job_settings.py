"""Loads a job's own settings from the environment and a generation's plan, and checks them before anything starts."""

import os
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import ValidationError
from pydantic_settings import BaseSettings

from infra.contract.jobs import Job
from infra.errors import UserError
from infra.settings import describe


def load_job_settings(job: Job, changes: Mapping[str, str] | None = None) -> BaseSettings | None:
    """The settings object of a job, None if it has none; `changes` (setting -> text) override the environment.

    Raises UserError naming the variable or the setting, its value and what it must be.
    """
    found = job.settings_class()
    if found is None:
        if changes:
            raise UserError(f"{job.name}.{next(iter(changes))}: {job.name} has no settings of its own")
        return None
    prefix = found.model_config.get("env_prefix", "")
    _refuse_unknown(found, prefix)
    given = {setting: parse_setting(found, job.name, setting, text) for setting, text in (changes or {}).items()}
    try:
        return found(**given)
    except ValidationError as error:
        if given.keys() & {*error.errors()[0]["loc"]}:
            raise UserError(f"{job.name}.{describe(error)}") from None
        raise UserError(describe(error, prefix)) from None


def _refuse_unknown(settings: type[BaseSettings], prefix: str) -> None:
    """Raises UserError naming a variable of the environment that begins as the job's settings do and is none of them.

    A misspelled setting, or one that has another name since, would otherwise change nothing without a word.
    """
    known = [f"{prefix}{name.upper()}" for name in settings.model_fields]
    for variable in sorted(os.environ):
        if prefix and variable.startswith(prefix) and variable not in known:
            raise UserError(
                f"{variable}={os.environ[variable]!r}: there is no such setting; there is {', '.join(known)}"
            )


def parse_setting(settings: type[BaseSettings], job: str, setting: str, text: str) -> Any:
    """The value of a setting from its text, for its field to validate; lists and objects are JSON.

    Raises UserError if there is no such setting.
    """
    if setting not in settings.model_fields:
        raise UserError(f"{job}.{setting}={text}: {job} has {', '.join(settings.model_fields)}")
    return orjson.loads(text) if text.startswith(("[", "{")) else text
