"""The declaration of the statistics job: what is checked before anything starts."""

import pytest

from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.job_settings import load_job_settings
from jobs.statistics.job import FOLD
from jobs.table import JOBS


@pytest.mark.parametrize(
    ("name", "text"),
    [("KAPPA_STATISTICS_WINDOWS", "windows: [{kind: hopping}]"), ("KAPPA_STATISTICS_STATE_TTL", "1h")],
)
def test_a_wrong_setting_is_one_line_before_spark_starts(monkeypatch, tmp_path, name, text):
    file = tmp_path / "windows.yaml"
    file.write_text(text)
    monkeypatch.setenv(name, str(file))
    with pytest.raises(UserError) as refused:
        FOLD.check_settings(load_job_settings(JOBS["statistics"]), load_topics())
    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)
