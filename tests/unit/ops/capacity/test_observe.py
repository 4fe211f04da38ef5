import pytest

from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.capacity.observe import Running, observe, running, seen, summed
from ops.job_addresses import JobAddresses

SAID = """
# TYPE kappa_batch_seconds histogram
kappa_batch_seconds_bucket{job="archive",query="archive.log",le="+Inf"} 3.0
kappa_batch_seconds_sum{job="archive",query="archive.log"} 12.5
kappa_batch_seconds_count{job="archive",query="archive.log"} 3.0
# TYPE kappa_input_rows counter
kappa_input_rows_total{job="archive",query="archive.log"} 100.0
kappa_input_rows_total{job="archive",query="archive.novelties"} 5.0
# TYPE kappa_lag_records gauge
kappa_lag_records{job="archive",partition="0",topic="events"} 7.0
kappa_lag_records{job="archive",partition="1",topic="events"} 8.0
kappa_lag_records{job="other",partition="0",topic="events"} 1000.0
"""


def test_a_jobs_rows_and_lag_are_summed_and_its_queries_stay_apart():
    found = seen(summed(SAID), "archive", ("archive.log", "archive.novelties"))
    assert found == ({"archive.log": 12.5}, 105.0, 15.0)


def test_each_spark_job_has_its_queries_address_and_partitions():
    settings = Settings(metrics_port=9400, metrics_host="127.0.0.1")
    found = running(settings, load_topics(), JobAddresses(settings))
    assert found["detector"] == Running(("detector",), "http://127.0.0.1:9402/metrics", 4)
    assert found["incidents"].address == found["detector"].address
    assert len(found["archive"].queries) > 1
    assert "indexer" not in found


def test_an_application_that_does_not_answer_is_named():
    with pytest.raises(UserError, match=r"http://127\.0\.0\.1:9/metrics: .*refused; start the jobs"):
        observe({"detector": Running(("detector",), "http://127.0.0.1:9/metrics", 4)}, JobAddresses(Settings()))
