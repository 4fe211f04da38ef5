"""What a fleet of pods leaves in the state of statistics and detector: after two days nothing more."""

from pathlib import Path
from statistics import median

import orjson
import pytest

from tests.hostile.churn import Fleet, measure

REPORT = Path("build/hostile.json")


@pytest.mark.timeout(3600)
def test_thirty_days_of_a_thousand_machines_with_a_hundred_thousand_names_cost_what_two_days_do():
    report = measure(Fleet())
    _keep(report)
    assert report["names"] == 100_000
    assert report["days"] == [2, 5, 10, 15, 20, 25, 30]
    assert max(report["state_bytes"]) < 1.25 * report["state_bytes"][0]
    assert max(report["disk_bytes"]) < 1.25 * report["disk_bytes"][0]
    # One figure alone has the machine's noise.
    assert median(report["window_seconds"][-3:]) < 1.5 * median(report["window_seconds"][:3])
    verdicts = report["verdicts"]
    assert verdicts["gone end"] > 30_000
    # Every silence ends, but those of the machines that are silent now.
    assert verdicts["silence start"] - verdicts["gone end"] < 1_000


def _keep(churn: dict) -> None:
    """Put the figures beside the cases' in the report."""
    REPORT.parent.mkdir(exist_ok=True)
    known = orjson.loads(REPORT.read_bytes()) if REPORT.exists() else {}
    REPORT.write_bytes(orjson.dumps(known | {"churn": churn}, option=orjson.OPT_INDENT_2))
