"""Pieces of Markdown."""

import re
from collections.abc import Iterable, Sequence

NOTICE = "<!-- Generated from the code by `make reference`: change the code, not this page. -->"


def page(title: str, *parts: str) -> str:
    """A generated page: title, notice, parts separated by blank lines."""
    return "\n\n".join([f"# {title}", NOTICE, *(part for part in parts if part)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; pipes and line breaks within cells are escaped."""
    lines = [_row(head), "|" + "---|" * len(head), *(_row(row) for row in rows)]
    return "\n".join(lines)


def code(text: object) -> str:
    """The text as inline code; nothing for an empty one."""
    return f"`{text}`" if str(text) else ""


def anchor(heading: str) -> str:
    """The anchor that MkDocs gives a heading."""
    kept = re.sub(r"[^\w\s-]", "", heading).strip().lower()
    return re.sub(r"[-\s]+", "-", kept)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
