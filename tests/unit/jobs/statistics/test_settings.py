"""The file of windows: what it declares, and what is refused."""

import pytest

from infra.contract.topics import Topic, parse_duration
from infra.errors import UserError
from jobs.statistics.settings import Windows, load_windows

TEN, MINUTE = {"kind": "tumbling", "size": "10s"}, {"kind": "tumbling", "size": "1m"}
COUNT = {"kind": "count", "values": 5, "names": ["x"]}
LAST = {"kind": "sliding_count", "values": 5, "slide": 2, "names": ["x"]}
SLIDING = {"kind": "sliding", "size": "5m", "slide": "1m"}


def windows(*declared, **more):
    return Windows.model_validate({"windows": declared, **more})


def test_what_the_shipped_file_declares():
    assert load_windows().lines == [
        "{kind: count, values: 60, names: [system.cpu.load_average.1m, collectd.load.*]}",
        "{kind: session, gap: 30s, least: 10, early: 60s}",
        "{kind: sliding, size: 300s, slide: 60s}",
        "{kind: tumbling, size: 10s}",
        "{kind: tumbling, size: 60s, early: 30s}",
        "state_ttl: 3600s",
    ]


def test_windows_are_put_together_from_the_largest_panes_that_fit():
    sizes = windows(MINUTE, TEN, SLIDING).sizes
    assert sizes.smallest == 10 * 10**9
    found = [sizes.under(size * 10**9, step * 10**9) // 10**9 for size, step in ((60, 60), (300, 60), (50, 20))]
    assert found == [10, 60, 10]


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
        ([TEN, {**COUNT, "timeout": "0s"}], "windows.1.count.timeout='0s'"),
        ([TEN, {**COUNT, "timeout": "1h"}], "timeout: 3600s}: timeout must be at most 3590s, state_ttl less"),
        ([TEN, {**COUNT, "early": "1h"}], "early: 3600s}: early must be at most 3590s, state_ttl less"),
        ([TEN, {**COUNT, "early": {"values": 5}}], "early must be of fewer values than the window"),
        ([TEN, {**COUNT, "early": {"values": 0}}], "windows.1.count.early.values.values=0"),
        ([TEN, {**COUNT, "early": "15s"}], "early must be a multiple of 10s"),
        ([{**TEN, "early": {"values": 9}}], "early results come with panes, and this window is the pane"),
        ([TEN, {**MINUTE, "early": "soon"}], "windows.1.tumbling.early.time.every='soon'"),
        ([TEN, {**LAST, "slide": 5}], "a slide must be of fewer values than its window"),
        ([TEN, {**LAST, "slide": 0}], "windows.1.sliding_count.slide=0"),
        ([TEN, {**LAST, "early": "10s"}], "there is no such field; there are kind, values, slide, names"),
        (
            [TEN, {"kind": "hopping", "size": "1m"}],
            "'hopping' found using 'kind' does not match any of the expected tags",
        ),
        (
            [{**TEN, "slide": "1s"}],
            "windows.0.tumbling.slide='1s': there is no such field; there are kind, size, early",
        ),
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


@pytest.mark.parametrize("text", ["windows: [", "17", "", "windows: 3", "\0"])
def test_what_is_no_list_of_windows_is_refused(tmp_path, text):
    file = tmp_path / "windows.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"windows\.yaml"):
        load_windows(file)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match=r"KAPPA_STATISTICS_WINDOWS=.*absent.yaml: No such file"):
        load_windows(tmp_path / "absent.yaml")


def test_a_field_of_an_earlier_version_is_named_with_those_there_are(tmp_path):
    file = tmp_path / "windows.yaml"
    file.write_text(str({"windows": [TEN], "forget": "1h"}))
    with pytest.raises(UserError) as refused:
        load_windows(file)
    assert str(refused.value) == f"{file}: forget='1h': there is no such field; there are windows, state_ttl"


def test_a_negative_lateness_is_refused_by_the_map():
    with pytest.raises(ValueError, match="write a whole number and a unit"):
        parse_duration("-20s")
    assert "lateness" in Topic.model_fields


def test_the_fingerprint_follows_the_meaning():
    one = windows(TEN, MINUTE, SLIDING)
    assert one.fingerprint == windows(SLIDING, MINUTE, {"size": "10000ms", "kind": "tumbling"}).fingerprint
    assert one.fingerprint != windows(TEN, MINUTE).fingerprint
    assert one.fingerprint != windows(TEN, MINUTE, SLIDING, state_ttl="2h").fingerprint
