import orjson
import pytest
from typer.testing import CliRunner

from ops.capacity import autoscale
from ops.capacity.advice import Seen
from tests.clock import Clock


@pytest.fixture
def watched(monkeypatch):
    """Jobs that are seen twice, and a clock that passes while the command sleeps."""
    clock, asked = Clock(0.0), []

    def observe(jobs, _):
        asked.append({*jobs})
        return {
            name: Seen({"q": clock.now}, 100 * clock.now, 0.0) for name in jobs
        }  # always busy, a hundred rows a second

    monkeypatch.setattr(autoscale, "observe", observe)
    monkeypatch.setattr(autoscale, "time", clock)
    return asked


def test_each_spark_job_gets_advice_of_the_time_between(watched):
    done = CliRunner().invoke(autoscale.app, ["--seconds", "60", "--cores", "3", "--json"])
    found = {one["job"]: one for one in orjson.loads(done.stdout)}
    assert watched == [{*found}, {*found}]
    assert {"enrichment", "statistics", "detector", "incidents", "archive"} == {*found}
    assert (found["detector"]["busy"], found["detector"]["rows_per_second"]) == (1.0, 100.0)
    assert (found["detector"]["cores"], found["detector"]["says"]) == (3, "5 cores and, before them, 5 partitions")


def test_the_advice_for_people(watched):
    said = CliRunner().invoke(autoscale.app, ["--seconds", "60"]).stdout
    assert "statistics  100%  100" in said
    assert "4 cores" in said
