"""What is read from a posted form."""

from collections.abc import Mapping, Sequence

from infra.errors import UserError

Form = Mapping[str, Sequence[str]]


def text(form: Form, name: str) -> str:
    """A field that must be there. Raises UserError if it isn't, or is empty."""
    if value := optional_text(form, name):
        return value
    raise UserError(f"{name}: is missing")


def optional_text(form: Form, name: str) -> str | None:
    """A field; None if it isn't there, or is empty."""
    values = form.get(name, ())
    return (values[0].strip() or None) if values else None


def whole_number(form: Form, name: str) -> int:
    """A field with a whole number. Raises UserError if it has none."""
    value = text(form, name)
    try:
        return int(value)
    except ValueError:
        raise UserError(f"{name}={value!r}: must be a whole number") from None
