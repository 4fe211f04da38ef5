import pytest

from jobs.runtime.settings import Settings
from ops.console.settings import ConsoleSettings
from ops.console.sources import Sources


@pytest.mark.parametrize(
    ("settings", "own", "application", "url"),
    [
        (Settings(), ConsoleSettings(), "detector", "http://127.0.0.1:9402/metrics"),
        (Settings(metrics_port=9500, profile="small"), ConsoleSettings(), "all", "http://127.0.0.1:9500/metrics"),
        (
            Settings(optional_jobs=("rules",)),
            ConsoleSettings(metrics_url="http://{application}:9400/metrics"),
            "rules",
            "http://rules:9400/metrics",
        ),
    ],
)
def test_metrics_are_where_run_all_or_the_setting_has_them(settings, own, application, url):
    assert Sources(settings, own)._metrics_url(application) == url
