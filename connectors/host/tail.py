"""Follows log files, through rotation, and journald."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, Self

from connectors.otlp import LogLine

JOURNAL = ("journalctl", "--follow", "--output=json", "--lines=0", "--quiet")
JOURNAL_FOLDERS = (Path("/run/log/journal"), Path("/var/log/journal"))
CHUNK = 1 << 16
# Syslog's priorities 0 to 7 on OTLP's scale (OpenTelemetry's log data model, appendix B).
PRIORITIES = (
    ("EMERGENCY", 21),
    ("ALERT", 19),
    ("CRITICAL", 18),
    ("ERROR", 17),
    ("WARN", 13),
    ("NOTICE", 10),
    ("INFO", 9),
    ("DEBUG", 5),
)
WORDS = {"ERROR": 17, "CRITICAL": 18, "FATAL": 21, "WARNING": 13, "WARN": 13, "DEBUG": 5}
STOP_TIMEOUT_S = 5


class FileTail:
    """Follows one file from its present end; after rotation or truncation it reads the new file from its start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._open()
        self._rest = b""
        if self._file:
            self._file.seek(0, os.SEEK_END)

    def read(self) -> list[LogLine]:
        """The lines completed since the last call; their time is that of the call."""
        replaced = self._replaced()  # checked before reading: a file that was replaced gets no further lines
        texts = list(self._new_lines())
        if replaced:
            texts.append(self._rest.decode(errors="replace"))
            self.close()
            self._file, self._rest = self._open(), b""
            texts += self._new_lines()
        now = time.time_ns()
        return [self._line(text, now) for text in texts if text.strip()]

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()

    def _open(self) -> BufferedReader | None:
        try:
            return self._path.open("rb")
        except FileNotFoundError:
            return None

    def _new_lines(self) -> Iterator[str]:
        while self._file and (chunk := self._file.read(CHUNK)):
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            yield from (line.decode(errors="replace").rstrip("\r") for line in whole)

    def _replaced(self) -> bool:
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return False  # moved away; the new one isn't there yet
        if self._file is None:
            return True
        mine = os.fstat(self._file.fileno())
        return (now.st_dev, now.st_ino) != (mine.st_dev, mine.st_ino) or now.st_size < self._file.tell()

    def _line(self, text: str, now: int) -> LogLine:
        level, number = _severity(text)
        return LogLine(now, text, level, number, (("log.file.path", str(self._path)),))


class Journal:
    """Follows journald from now on, by a running `journalctl`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self._process = process
        self._stdout = process.stdout
        self._rest = b""

    @classmethod
    def start(cls) -> Self | None:
        """Start `journalctl`; None if this machine has no journal."""
        has_journal = any(folder.is_dir() for folder in JOURNAL_FOLDERS)
        if not has_journal or shutil.which(JOURNAL[0]) is None:
            return None
        return cls(subprocess.Popen(JOURNAL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))

    def read(self) -> list[LogLine]:
        """The entries since the last call, with their own times."""
        *whole, self._rest = (self._rest + (self._stdout.read() or b"")).split(b"\n")
        return [journal_line(json.loads(text)) for text in whole if text]

    def close(self) -> None:
        """End `journalctl`."""
        self._process.terminate()
        self._process.wait(STOP_TIMEOUT_S)
        self._stdout.close()


def journal_line(entry: dict[str, Any]) -> LogLine:
    """A journal entry in `journalctl --output=json` form as a log line."""
    message = entry.get("MESSAGE") or ""
    if isinstance(message, list):  # bytes that aren't UTF-8 come as a list of numbers
        message = bytes(message).decode(errors="replace")
    level, number = PRIORITIES[int(entry.get("PRIORITY", 6))]
    names = {"SYSLOG_IDENTIFIER": "syslog.appname", "_SYSTEMD_UNIT": "systemd.unit", "_PID": "process.pid"}
    labels = tuple((label, str(entry[name])) for name, label in names.items() if name in entry)
    return LogLine(int(entry["__REALTIME_TIMESTAMP"]) * 1000, str(message), level, number, labels)


def _severity(text: str) -> tuple[str, int]:
    """Severity text and number by the first word in capitals that names a level; INFO if there is none."""
    words = text.replace("[", " ").replace("]", " ").replace(":", " ").split()
    level = next((word for word in words if word in WORDS), "INFO")
    return level, WORDS.get(level, 9)
