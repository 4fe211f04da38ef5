"""The settings of the notifier: a faulty file or a missing secret is reported before anything starts."""

import pytest
import yaml

from infra.errors import UserError
from jobs.notifier.settings import NotifierSettings
from jobs.runtime.job_settings import load_job_settings
from jobs.table import JOBS
from tests.unit.jobs.notifier.records import CHANNELS


def write(tmp_path, **channels):
    file = tmp_path / "routes.yaml"
    routes = [{"name": "all", "channels": [*channels]}]
    file.write_text(yaml.safe_dump({"channels": channels, "routes": routes}))
    return str(file)


def test_without_a_file_there_is_nothing_to_do():
    with pytest.raises(UserError, match="KAPPA_NOTIFIER_ROUTES: is missing; name a file of routes"):
        NotifierSettings().routing()


def test_a_faulty_file_is_refused_with_the_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("KAPPA_NOTIFIER_ROUTES", write(tmp_path, mail={"kind": "fax"}))
    with pytest.raises(UserError, match=r"channels\.mail\.kind: must be one of"):
        load_job_settings(JOBS["notifier"])


def test_a_secret_that_is_not_set_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("KAPPA_NOTIFIER_ROUTES", write(tmp_path, slack={"kind": "apprise", "url_env": "SLACK_URL"}))
    with pytest.raises(UserError, match="SLACK_URL: is not set"):
        NotifierSettings().routing()


def test_what_the_file_declares(tmp_path, monkeypatch):
    monkeypatch.setenv("KAPPA_NOTIFIER_ROUTES", write(tmp_path, mail=CHANNELS["mail"]))
    assert NotifierSettings().routing().topics == ("incidents", "alerts")
