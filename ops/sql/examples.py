"""Questions to begin with; each has an answer on the demo's data."""

from typing import NamedTuple


class Example(NamedTuple):
    """A question and its SQL."""

    title: str
    sql: str


EXAMPLES = (
    Example(
        "Which machines had the most novelties?",
        "SELECT machine, count(DISTINCT id) AS novelties, max(score) AS strongest,\n"
        "       list(DISTINCT verdict) AS verdicts\n"
        "FROM novelties WHERE phase = 'start'\n"
        "GROUP BY machine ORDER BY strongest DESC",
    ),
    Example(
        "How does a series go over time?",
        "SELECT time, mean, min, max FROM series\n"
        "WHERE machine = 'vm-17' AND series = 'system.cpu.utilization{state=user}' AND size_seconds = 10\n"
        "ORDER BY time",
    ),
    Example(
        "How does each site's processor load go?",
        "SELECT time, avg(mean) FILTER (site = 'site-1') AS \"site-1\",\n"
        "       avg(mean) FILTER (site = 'site-2') AS \"site-2\"\n"
        "FROM series WHERE name = 'system.cpu.load_average.1m' AND size_seconds = 60\n"
        "GROUP BY time ORDER BY time",
    ),
    Example(
        "Which log templates are the most frequent?",
        "SELECT series AS template, sum(count) AS lines, count(DISTINCT machine) AS machines\n"
        "FROM series WHERE kind = 'log' AND size_seconds = 10\n"
        "GROUP BY series ORDER BY lines DESC LIMIT 20",
    ),
    Example(
        "What was rejected, and why?",
        "SELECT stage, code, reason, count(*) AS letters, sum(events) AS events, max(timestamp) AS newest\n"
        "FROM events_rejected GROUP BY ALL ORDER BY letters DESC",
    ),
    Example(
        "How long do anomalies last?",
        "SELECT statistic, count(*) AS ended,\n"
        "       median((time_unix_nano - since_unix_nano) / 1e9) AS median_seconds\n"
        "FROM novelties WHERE phase = 'end' GROUP BY statistic ORDER BY ended DESC",
    ),
    Example("Which columns are there?", "DESCRIBE novelties"),
)
