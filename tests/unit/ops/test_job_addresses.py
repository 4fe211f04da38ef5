import pytest

from jobs.runtime.settings import Settings
from ops.job_addresses import JobAddresses

IN_CONTAINERS = "http://kappa-{application}-1:9400/metrics"


@pytest.mark.parametrize(
    ("settings", "template", "application", "url"),
    [
        (Settings(), None, "detector", "http://127.0.0.1:9402/metrics"),
        (Settings(metrics_port=9500, profile="small"), None, "all", "http://127.0.0.1:9500/metrics"),
        (Settings(optional_jobs=("rules",)), IN_CONTAINERS, "rules", "http://kappa-rules-1:9400/metrics"),
    ],
)
def test_metrics_are_where_run_all_or_the_template_has_them(settings, template, application, url):
    assert JobAddresses(settings, template).metrics(application) == url


@pytest.mark.parametrize(
    ("settings", "job", "url"),
    [
        (Settings(), "incidents", "http://127.0.0.1:9402/state?machine=vm-1&series=cpu%7Ba%3D1%7D"),
        (Settings(profile="small"), "detector", "http://127.0.0.1:9400/state?machine=vm-1&series=cpu%7Ba%3D1%7D"),
    ],
)
def test_a_question_goes_to_the_application_of_the_job(settings, job, url):
    assert JobAddresses(settings).question(job, "/state", machine="vm-1", series="cpu{a=1}") == url
