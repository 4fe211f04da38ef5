"""The declaration of the statistics job: what is checked before anything starts."""

import threading

import pytest

from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.settings import Settings
from jobs.statistics import job


@pytest.mark.parametrize(
    ("name", "text"),
    [("KAPPA_STATISTICS_WINDOWS", "windows: [{kind: hopping}]"), ("KAPPA_STATISTICS_STATE_TTL", "1h")],
)
def test_a_wrong_setting_is_one_line_before_spark_starts(monkeypatch, tmp_path, name, text):
    file = tmp_path / "windows.yaml"
    file.write_text(text)
    monkeypatch.setattr(job, "run_queries", lambda *_: pytest.fail("started"))
    monkeypatch.setenv(name, str(file))
    with pytest.raises(UserError) as refused:
        job.run(Settings(home=tmp_path), load_topics(), threading.Event())
    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_query_is_built_after_its_checkpoint_was_checked(monkeypatch):
    called = []
    monkeypatch.setattr(job, "prepare", lambda context: called.append(("prepare", context)))
    monkeypatch.setattr(job, "start_job", lambda declared, context, gate: called.append((declared.name, context)))
    job.start("context", "gate")
    assert called == [("prepare", "context"), ("statistics", "context")]
