"""What an operator can do: each action is a form that is posted to /act/NAME."""

from collections.abc import Callable
from dataclasses import dataclass

from ops.console.actions import control, generations, rejected
from ops.console.actions.forms import Form
from ops.console.writes import Writes


@dataclass(frozen=True)
class Action:
    """An action.

    Attributes:
        name: of its address.
        do: takes what the form says and the name of the person; returns a sentence that says what was done. Raises
            UserError if it can't be done.
        ends: where the page goes afterwards; by default where the form was.
    """

    name: str
    do: Callable[[Writes, Form, str], str]
    ends: str | None = None


ACTIONS = (
    Action("feedback", control.feedback),
    Action("reset", control.reset),
    Action("suppress", control.suppress, ends="/control"),
    Action("allow", control.allow),
    Action("retire", control.retire),
    Action("retry", rejected.retry),
    Action("start", generations.start),
    Action("promote", generations.promote),
    Action("rollback", generations.rollback),
    Action("drop", generations.drop),
    Action("diff", generations.diff),
    Action("savepoint", generations.savepoint),
    Action("verify-savepoint", generations.verify_savepoint),
    Action("delete-savepoint", generations.delete_savepoint),
)
