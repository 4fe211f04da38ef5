"""A result as CSV."""

import csv
from typing import Any, TextIO

import orjson

# What a spreadsheet would take for a formula: names and log lines are whatever their sender likes.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(answer: dict[str, Any], file: TextIO) -> None:
    """Write a result with a header; what is nested is JSON, and no text is a formula."""
    writer = csv.writer(file)
    writer.writerow([harmless(column["name"]) for column in answer["columns"]])
    writer.writerows([harmless(as_text(value)) for value in row] for row in answer["rows"])


def as_text(value: Any) -> Any:
    """What is nested as JSON, all else as it is."""
    return orjson.dumps(value).decode() if isinstance(value, list | dict) else value


def harmless(value: Any) -> Any:
    """A text that a spreadsheet would compute gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
