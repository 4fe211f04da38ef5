"""How far each site has come, by the statistics of its machines."""

from collections.abc import Sequence
from typing import Any

from ops.console.running_jobs import Sample
from ops.console.views.health import MOST_EVENT_TIME_LAG, Problem

SHOWN = 50  # those that are furthest behind


def sites(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Those that the job has had statistics of since it was started: the newest event time, ms, and seconds behind.

    A site is behind what the job has completed of all sites together. `samples` are those of its application.
    """
    done = max((one.value for one in samples if one.name == "kappa_event_time_seconds" and _is_own(one)), default=0.0)
    newest = {one.labels["site"]: one.value for one in samples if one.name == "kappa_site_event_time_seconds"}
    behind = {site: max(0.0, done - seconds) for site, seconds in newest.items()}
    names = sorted(newest, key=lambda site: (-behind[site], site))
    return [_site(name, newest[name], behind[name]) for name in names[:SHOWN]]


def _is_own(one: Sample) -> bool:
    return one.labels.get("job") == "statistics"


def _site(name: str, newest: float, behind: float) -> dict[str, Any]:
    problem = Problem("sends nothing, or nothing of it arrives", "KappaSiteBehind")
    return {
        "site": name,
        "newest": newest * 1000,
        "behind": behind,
        "problems": [problem.as_dict()] if behind > MOST_EVENT_TIME_LAG else [],
    }
