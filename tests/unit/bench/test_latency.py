"""What the report of `make bench-latency` takes from other benchmarks' reports."""

import orjson

from tests.bench.latency import beside


def test_other_reports_are_taken_as_they_are_and_of_the_demo_the_middle(tmp_path):
    assert beside(tmp_path) == {}
    faults = [{"seen_s": seen} for seen in (4.0, 31.0, None, 12.0)]
    (tmp_path / "demo.json").write_bytes(orjson.dumps({"faults": faults}))
    (tmp_path / "yahoo.json").write_bytes(b'{"passed":true}')
    assert beside(tmp_path) == {"yahoo": {"passed": True}, "fault_to_elasticsearch_p50_s": 12.0}
