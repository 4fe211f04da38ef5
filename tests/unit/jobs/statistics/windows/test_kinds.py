"""What every kind of windows must do; a new kind is in these tests by being in the registry."""

from functools import partial

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.contract import schemas
from jobs.statistics.shard import Shard
from jobs.statistics.windows import KINDS
from tests.unit.jobs.folds import cuts_of, data, fed
from tests.unit.jobs.statistics.test_shard import build_log, early, finals, flat, log_of, run, segments, windows

TEN = {"kind": "tumbling", "size": "10s"}
# Of each kind, declarations that small logs complete.
DECLARED = {
    "tumbling": [
        {"kind": "tumbling", "size": "30s", "early": "10s"},
        {"kind": "tumbling", "size": "60s", "early": {"values": 2}},
    ],
    "sliding": [{"kind": "sliding", "size": "60s", "slide": "30s"}],
    "session": [
        {"kind": "session", "gap": "15s", "least": 2, "early": "10s"},
        {"kind": "session", "gap": "20s", "least": 1, "early": {"values": 3}},
    ],
    "count": [
        {"kind": "count", "values": 3, "names": ["cpu*"]},
        {"kind": "count", "values": 4, "names": ["cpu"], "timeout": "12s", "early": "20s"},
        {"kind": "count", "values": 5, "names": ["*"], "timeout": "10s", "early": {"values": 2}},
    ],
    "sliding_count": [{"kind": "sliding_count", "values": 3, "slide": 2, "names": ["cpu"]}],
}
EACH = [pytest.param(one, id=f"{kind}-{n}") for kind, ones in DECLARED.items() for n, one in enumerate(ones)]


def test_every_kind_is_tested():
    assert DECLARED.keys() == KINDS.keys()


def of_kind(outputs, kind):
    return [output for output in outputs if orjson.loads(output.value).get("window", {}).get("kind") == kind]


@pytest.mark.parametrize("declared", EACH)
@settings(max_examples=15, deadline=None)
@given(segments.map(build_log), st.data())
def test_neither_cuts_nor_workers_show(declared, log, chosen):
    values, opener = flat(log), partial(Shard, windows(TEN, declared, state_ttl="50s"))
    whole_state, whole = fed(opener, log_of(values))
    state, outputs = fed(opener, log_of(values), chosen.draw(cuts_of(len(values))))
    assert data(outputs) == data(whole)
    assert state == whole_state


@settings(max_examples=30, deadline=None)
@given(segments.map(build_log), st.randoms(use_true_random=False))
def test_the_order_of_declarations_does_not_show(log, random):
    declared = [TEN, *(one for ones in DECLARED.values() for one in ones)]
    shuffled = random.sample(declared, len(declared))
    one, other = (fed(partial(Shard, windows(*those)), log_of(flat(log))) for those in (declared, shuffled))
    assert one == other


@pytest.mark.parametrize("declared", EACH)
@settings(max_examples=15, deadline=None)
@given(segments.map(build_log))
def test_records_are_measured_by_what_the_schema_knows(declared, log):
    for output in of_kind(run(flat(log), windows(TEN, declared)), declared["kind"]):
        assert set(orjson.loads(output.value)["window"]) <= set(schemas.WINDOW.names)


@pytest.mark.parametrize("declared", [one for one in EACH if "early" in one.values[0]])
@settings(max_examples=15, deadline=None)
@given(segments.map(build_log))
def test_an_early_result_shares_its_id_with_one_final_result_that_covers_it(declared, log):
    """All windows are complete long after the last record."""
    outputs = run([*flat(log), watermark_after(log)], windows(TEN, declared))
    by_id = {r["id"]: r for r in finals(outputs) if r.get("window", {}).get("kind") == declared["kind"]}
    for found in early(outputs):
        if found["id"] not in by_id:  # a count window without a time-out may stay open
            assert declared["kind"] == "count"
            assert "timeout" not in declared
            continue
        final = by_id[found["id"]]
        assert found["window"]["start_unix_nano"] == final["window"]["start_unix_nano"]
        now, then = counts(found), counts(final)
        assert all(count <= then[series] for series, count in now.items())


def counts(found):
    return {(one["series"], one.get("unit")): one["count"] for one in found["statistics"]}


def watermark_after(log):
    last = orjson.loads(log[-1][1])["watermark_unix_nano"]
    return orjson.dumps({"watermark_unix_nano": last + 600 * 10**9})
