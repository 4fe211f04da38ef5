"""What an operator does with generations and savepoints: each is a command of `kappa`, begun in the background."""

import re

from infra.contract.topics import GENERATION
from infra.errors import UserError
from ops.console.actions.forms import Form, optional_text, text
from ops.console.writes import Writes

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # a savepoint's
# Of a start: the field of the form, and the option.
OPTIONS = {
    "job": "--job",
    "from": "--from",
    "to": "--to",
    "source": "--source",
    "where": "--where",
    "max_rate": "--max-rate",
    "base": "--base",
    "image": "--image",
}


def start(writes: Writes, form: Form, by: str) -> str:
    """A generation is planned, and started where its jobs are processes of this machine."""
    name = _generation(form, "name")
    options = [f"{option}={value}" for field, option in OPTIONS.items() if (value := optional_text(form, field))]
    changes = [f"--set={line.strip()}" for line in (optional_text(form, "set") or "").splitlines() if line.strip()]
    detach = ["--detach"] if writes.runs_processes else []
    return _begun(writes, by, "replay", "start", f"--as={name}", *options, *changes, *detach)


def promote(writes: Writes, form: Form, by: str) -> str:
    """Readers are switched to a generation."""
    force = ["--force"] if optional_text(form, "force") else []
    return _begun(writes, by, "replay", "promote", _generation(form, "name"), *force)


def rollback(writes: Writes, form: Form, by: str) -> str:
    """Readers are switched back."""
    return _begun(writes, by, "replay", "rollback")


def drop(writes: Writes, form: Form, by: str) -> str:
    """Everything of a generation is deleted. Raises UserError unless its name was typed again."""
    name = _generation(form, "name")
    if optional_text(form, "typed") != name:
        raise UserError(f"typed: type the generation's name, {name}, to delete all that it has")
    return _begun(writes, by, "replay", "drop", name)


def diff(writes: Writes, form: Form, by: str) -> str:
    """Two generations are compared."""
    return _begun(writes, by, "replay", "diff", _generation(form, "one"), _generation(form, "other"), "--json")


def savepoint(writes: Writes, form: Form, by: str) -> str:
    """A savepoint of a job, or of all jobs at once, is taken."""
    job = optional_text(form, "job")
    return _begun(writes, by, "savepoint", "create", _savepoint(form), f"--job={job}" if job else "--all")


def verify_savepoint(writes: Writes, form: Form, by: str) -> str:
    """Every file of a savepoint is read."""
    return _begun(writes, by, "savepoint", "verify", _savepoint(form))


def delete_savepoint(writes: Writes, form: Form, by: str) -> str:
    """A savepoint is deleted. Raises UserError unless its name was typed again."""
    name = _savepoint(form)
    if optional_text(form, "typed") != name:
        raise UserError(f"typed: type the savepoint's name, {name}, to delete it")
    return _begun(writes, by, "savepoint", "delete", name)


def _begun(writes: Writes, by: str, *arguments: str) -> str:
    return f"Begun: {writes.command(arguments, by)}."


def _savepoint(form: Form) -> str:
    name = text(form, "name")
    if not NAME.fullmatch(name):
        raise UserError(f"name={name!r}: use up to 100 letters, digits, dots, hyphens, underscores, e.g. monday")
    return name


def _generation(form: Form, field: str) -> str:
    name = text(form, field)
    if not re.fullmatch(GENERATION, name):
        raise UserError(f"{field}={name!r}: use up to 31 lower-case letters, digits and hyphens, e.g. v2")
    return name
