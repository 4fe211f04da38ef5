"""The log lines that a window's records have as examples of their templates, for the sentences of novelties."""

from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]


class WindowExamples:
    """Looks up examples among the records of the present window."""

    def __init__(self) -> None:
        self._records: Sequence[Record] = ()

    def start_window(self, records: Sequence[Record]) -> None:
        """The records of the window that takes its step."""
        self._records = records

    def of(self, machine: str, kind: str, series: str) -> str | None:
        """A line of this template on this machine; None if the series is no template, or no line is known."""
        if kind != "log":
            return None
        for record in self._records:
            if record["machine"] == machine and "example" in (statistics := record["statistics"]):
                rows = zip(statistics["kind"], statistics["series"], statistics["example"], strict=True)
                found = (example for kind, name, example in rows if kind == "log" and name == series)
                if example := next(found, None):
                    return str(example)
        return None
