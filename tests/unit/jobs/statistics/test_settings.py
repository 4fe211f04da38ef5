"""The file of windows: what it declares, and what is refused."""

import pytest

from infra.contract.topics import Topic, parse_duration
from infra.errors import UserError
from jobs.statistics.settings import Sliding, Tumbling, Windows, load_windows

TEN, MINUTE = {"kind": "tumbling", "size": "10s"}, {"kind": "tumbling", "size": "1m"}
SLIDING = {"kind": "sliding", "size": "5m", "slide": "1m"}


def windows(*declared, **more):
    return Windows.model_validate({"windows": declared, **more})


def test_the_shipped_file_has_every_kind():
    shipped = load_windows()
    assert [window.size // 10**9 for window in shipped.tumbling] == [10, 60]
    assert [(window.size // 10**9, window.slide // 10**9) for window in shipped.sliding] == [(300, 60)]
    assert [window.gap // 10**9 for window in shipped.sessions] == [30]
    assert [window.values for window in shipped.counts] == [60]


def test_windows_are_put_together_from_the_largest_panes_that_fit():
    declared = windows(MINUTE, TEN, SLIDING)
    assert declared.pane == 10 * 10**9
    assert declared.panes_of(Tumbling(kind="tumbling", size=60 * 10**9)) == 10 * 10**9
    assert declared.panes_of(declared.sliding[0]) == 60 * 10**9
    assert declared.panes_of(Sliding(kind="sliding", size=50 * 10**9, slide=20 * 10**9)) == 10 * 10**9


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        ([], "a tumbling window is missing"),
        ([SLIDING], "a tumbling window is missing"),
        ([TEN, TEN], "{kind: tumbling, size: 10s} is declared 2 times"),
        ([TEN, {**TEN, "early": "10s"}], "size must be a multiple of 10s"),
        ([TEN, {"kind": "tumbling", "size": "15s"}], "{kind: tumbling, size: 15s}: size must be a multiple of 10s"),
        ([{"kind": "tumbling", "size": "0s"}], "windows.0.tumbling.size='0s'"),
        ([{"kind": "tumbling", "size": "-10s"}], "windows.0.tumbling.size='-10s'"),
        ([{"kind": "tumbling", "size": "ten"}], "write a whole number and a unit"),
        ([{"kind": "tumbling"}], "windows.0.tumbling.size: is missing"),
        ([TEN, {**SLIDING, "slide": "10m"}], "a slide must be shorter than its size"),
        ([TEN, {**SLIDING, "slide": "0s"}], "windows.1.sliding.slide='0s'"),
        ([TEN, {**SLIDING, "slide": "25s"}], "size and slide must be multiples of"),
        ([TEN, {"kind": "session", "gap": "0s"}], "windows.1.session.gap='0s'"),
        ([TEN, {"kind": "session", "gap": "30s", "early": "7s"}], "early must be a multiple of 10s"),
        ([TEN, {**MINUTE, "early": "1m"}], "early must be shorter than the window"),
        ([TEN, {"kind": "count", "values": 1, "names": ["x"]}], "windows.1.count.values=1"),
        ([TEN, {"kind": "count", "values": 5, "names": []}], "windows.1.count.names"),
        ([TEN, {"kind": "hopping", "size": "1m"}], "windows.1"),
        ([{**TEN, "slide": "1s"}], "windows.0.tumbling.slide='1s'"),
    ],
)
def test_what_makes_no_sense_is_named(tmp_path, declared, fault):
    file = tmp_path / "windows.yaml"
    file.write_text(str({"windows": declared}))
    with pytest.raises(UserError) as refused:
        load_windows(file)
    assert str(file) in str(refused.value)
    assert fault in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["windows: [", "17", "", "windows: 3"])
def test_what_is_no_list_of_windows_is_refused(tmp_path, text):
    file = tmp_path / "windows.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"windows\.yaml"):
        load_windows(file)


def test_a_file_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("KAPPA_STATISTICS_WINDOWS", str(tmp_path / "absent.yaml"))
    with pytest.raises(UserError, match=r"KAPPA_STATISTICS_WINDOWS=.*absent.yaml: No such file"):
        load_windows()


def test_a_negative_lateness_is_refused_by_the_map():
    with pytest.raises(ValueError, match="write a whole number and a unit"):
        parse_duration("-20s")
    assert "lateness" in Topic.model_fields


def test_the_fingerprint_follows_the_meaning():
    one = windows(TEN, MINUTE, SLIDING)
    assert one.fingerprint == windows(SLIDING, MINUTE, {"size": "10000ms", "kind": "tumbling"}).fingerprint
    assert one.fingerprint != windows(TEN, MINUTE).fingerprint
    assert one.fingerprint != windows(TEN, MINUTE, SLIDING, forget="2h").fingerprint
