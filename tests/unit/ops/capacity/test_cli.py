import orjson
from typer.testing import CliRunner

from ops.capacity.cli import app

LOAD = ("--events-per-second", "1000000", "--machines", "320000", "--scrape", "10")


def test_the_plan_as_json():
    found = orjson.loads(CliRunner().invoke(app, [*LOAD, "--json"]).stdout)
    assert found["load"]["series"] == 10_000_000
    assert [one["job"] for one in found["jobs"]] == ["enrichment", "statistics", "detector", "archive"]
    assert found["limits"][0]["ratio"] > 1


def test_the_plan_for_people():
    said = CliRunner().invoke(app, LOAD).stdout
    assert "10,000,000 series" in said
    assert "what breaks first" in said
    assert "19.2 GB" in said
