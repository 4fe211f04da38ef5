"""What an operator tells the detector."""

from infra.errors import UserError
from ops.console.actions.forms import Form, optional_text, text, whole_number
from ops.console.views.control import rule_of
from ops.console.writes import Writes


def feedback(writes: Writes, form: Form, by: str) -> str:
    """A novelty is none."""
    machine = writes.feedback(text(form, "novelty"), whole_number(form, "started"), by)
    return f"The detector is told that this is normal on {machine}."


def reset(writes: Writes, form: Form, by: str) -> str:
    """Series are learned anew. Raises UserError if that were every series of every machine."""
    series, machine = text(form, "series"), text(form, "machine")
    if series == machine == "*":
        raise UserError("series: every series of every machine would be reset; name series, or a machine")
    writes.reset(series, machine, by)
    return f"Series {series} on {machine} are learned anew."


def suppress(writes: Writes, form: Form, by: str) -> str:
    """Novelties are suppressed. Raises UserError if a rule would suppress all of them."""
    rule = rule_of({name: optional_text(form, name) or "" for name in form})
    if rule is None:
        raise UserError("machine: every novelty would be suppressed; say which machine, series, direction or size")
    writes.suppress(rule, by)
    return f"Rule {rule.id} holds."


def allow(writes: Writes, form: Form, by: str) -> str:
    """A rule holds no longer."""
    rule = text(form, "rule")
    writes.allow(rule, by)
    return f"Rule {rule} is over."


def retire(writes: Writes, form: Form, by: str) -> str:
    """A machine goes. Raises UserError unless its name was typed again."""
    machine = text(form, "machine")
    if optional_text(form, "typed") != machine:
        raise UserError(f"typed: type the machine's name, {machine}, to retire it")
    writes.retire(machine, by)
    return f"{machine} is retired."
