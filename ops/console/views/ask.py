"""The view in which the Delta tables are asked by SQL."""

from collections.abc import Mapping
from typing import Any

from ops.console.sources import Sources
from ops.sql.examples import EXAMPLES

View = dict[str, Any]

SQL, DRAFT = "sql", "draft"


_EMPTY: View = {
    "columns": [],
    "rows": [],
    "is_complete": True,
    "seconds": None,
    "tables": [],
    "missing": [],
    "error": "",
}


def ask(sources: Sources, arguments: Mapping[str, str]) -> View:
    """The result of `sql`, and how fresh the tables are; without it, or with a `draft`, only this.

    Raises UserError if the query can't be answered.
    """
    sql = arguments.get(SQL, "")
    return _EMPTY | {"sql": sql or arguments.get(DRAFT, ""), "is_asked": bool(sql.strip())} | sources.ask(sql)


def refused(arguments: Mapping[str, str], reason: str) -> View:
    """The view of a query that can't be answered: the query, to be mended, and why."""
    return _EMPTY | {"sql": arguments.get(SQL, ""), "is_asked": True, "error": reason}


def examples() -> View:
    """Queries to begin with."""
    return {"examples": EXAMPLES}
