"""What follows from the table of jobs for the topics of a generation."""

from infra.contract.jobs import Job, JobTable
from infra.contract.topics import load_topics
from jobs.table import JOBS

TOPICS = load_topics()
EXTRA = Job("extra", reads=("events",), writes=("alerts",), code="jobs.extra:FOLD", optional=True)
TABLE = JobTable((*(job for job in JOBS if job.name != "rules"), EXTRA))  # which is what else writes alerts


def test_a_generation_of_the_whole_chain_archives_everything_whether_optional_jobs_run_or_not():
    for jobs in (None, TABLE.enabled(), TABLE.enabled(["extra"])):
        topics = TABLE.topics_in(TOPICS, "v2", jobs)
        assert topics.own is None
        assert topics["alerts"].name == "alerts.v2" and topics["inventory"] in topics.archived


def test_a_generation_of_an_optional_job_alone_reads_what_it_is_based_on():
    topics = TABLE.topics_in(TOPICS, "v2", ["extra", "archive"])
    assert (topics["alerts"].name, topics["events"].name) == ("alerts.v2", "events")
    assert [topic.name for topic in topics.archived] == ["alerts.v2"]
