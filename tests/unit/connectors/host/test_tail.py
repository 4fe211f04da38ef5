import os
import time

import pytest

from connectors.host.tail import FileTail, Journal, journal_line


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "app.log"
    path.write_text("written before\n")
    return path


@pytest.fixture
def tail(path):
    tail = FileTail(path)
    yield tail
    tail.close()


def append(path, text):
    with path.open("a") as file:
        file.write(text)


def bodies(tail):
    return [line.body for line in tail.read()]


def test_only_what_comes_from_now_on_is_read(path, tail):
    append(path, "one\ntwo\n")
    assert bodies(tail) == ["one", "two"]
    assert bodies(tail) == []


def test_a_line_is_read_when_it_is_complete(path, tail):
    append(path, "one\nhal")
    assert bodies(tail) == ["one"]
    append(path, "f\n\n  \n")
    assert bodies(tail) == ["half"]


def test_rotation_by_rename_loses_nothing(path, tail):
    append(path, "one\n")
    path.rename(path.with_suffix(".1"))
    append(path.with_suffix(".1"), "two, still into the old\n")
    append(path, "three, into the new\n")
    assert bodies(tail) == ["one", "two, still into the old", "three, into the new"]
    append(path, "four\n")
    assert bodies(tail) == ["four"]


def test_the_new_file_may_come_later(path, tail):
    path.rename(path.with_suffix(".1"))
    assert bodies(tail) == []
    append(path, "first of the new\n")
    assert bodies(tail) == ["first of the new"]


def test_a_truncated_file_is_read_from_its_start(path, tail):
    os.truncate(path, 0)
    append(path, "anew\n")
    assert bodies(tail) == ["anew"]


def test_a_file_that_comes_later_is_read_from_its_start(tmp_path):
    tail = FileTail(tmp_path / "later.log")
    assert bodies(tail) == []
    append(tmp_path / "later.log", "hello\n")
    assert bodies(tail) == ["hello"]
    tail.close()


def test_a_long_line_and_odd_bytes_are_kept(path, tail):
    with path.open("ab") as file:
        file.write(b"x" * 200_000 + b"\n" + b"caf\xe9\r\n")
    assert bodies(tail) == ["x" * 200_000, "caf\ufffd"]


def test_a_line_carries_its_file_the_time_of_reading_and_its_severity(path, tail):
    append(path, "2026-01-01 [ERROR] disk gone\nall well\n")
    before = time.time_ns()
    error, info = tail.read()
    assert before <= error.time_unix_nano <= time.time_ns()
    assert (error.severity_text, error.severity_number) == ("ERROR", 17)
    assert (info.severity_text, info.severity_number) == ("INFO", 9)
    assert dict(error.attributes) == {"log.file.path": str(path)}


def test_a_journal_entry_keeps_its_time_to_the_microsecond():
    entry = {
        "MESSAGE": "Started Session 4.",
        "PRIORITY": "3",
        "__REALTIME_TIMESTAMP": "1795250493123456",
        "SYSLOG_IDENTIFIER": "systemd",
        "_PID": "1",
    }
    line = journal_line(entry)
    assert line[:4] == (1795250493123456000, "Started Session 4.", "ERROR", 17)
    assert dict(line.attributes) == {"syslog.appname": "systemd", "process.pid": "1"}


def test_a_journal_entry_of_bytes_is_text():
    assert journal_line({"MESSAGE": [104, 105, 255], "__REALTIME_TIMESTAMP": "1"}).body == "hi\ufffd"


def test_a_journal_is_read_as_its_entries_come(tmp_path, monkeypatch):
    fifo = tmp_path / "journal"
    os.mkfifo(fifo)
    monkeypatch.setattr("connectors.host.tail.JOURNAL", ("cat", str(fifo)))
    monkeypatch.setattr("connectors.host.tail.JOURNAL_FOLDERS", (tmp_path,))
    journal = Journal.start()
    with fifo.open("w") as entries:
        entries.write('{"MESSAGE":"one","__REALTIME_TIMESTAMP":"1"}\n{"MESSAGE":"tw')
        entries.flush()
        assert wait_for(journal) == ["one"]
        entries.write('o","__REALTIME_TIMESTAMP":"2"}\n')
        entries.flush()
        assert wait_for(journal) == ["two"]
    journal.close()
    assert journal._process.poll() is not None


def test_without_a_journal_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr("connectors.host.tail.JOURNAL_FOLDERS", (tmp_path / "none",))
    assert Journal.start() is None


def wait_for(journal):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if found := bodies(journal):
            return found
    raise TimeoutError("nothing came from the journal")
