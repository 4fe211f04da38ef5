"""Retries of dead letters."""

from infra.errors import UserError
from ops.console.actions.forms import Form, optional_text
from ops.console.writes import Writes
from ops.redrive import Wanted

FILTERS = ("stage", "code", "topic", "machine")


def retry(writes: Writes, form: Form, by: str) -> str:
    """The chosen dead letters go through enrichment again, or all that meet the filter."""
    stage, code, topic, machine = (optional_text(form, name) for name in FILTERS)
    ids, everything = form.get("id", ()), optional_text(form, "which") == "all"
    if not ids and not everything:
        raise UserError("id: choose dead letters")
    return f"Retried: {writes.retry(() if everything else ids, Wanted(stage, code, topic, machine))}."
