"""`kappa settings` lists every setting, and shows no secret."""

import json

import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from infra.settings import InfraSettings
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.cli import app
from ops.commands.settings import MASK, catalogue

RUNNER = CliRunner()


def test_every_setting_of_every_class_is_listed_once():
    variables = [one.variable for one in catalogue()]
    assert len(variables) == len(set(variables))
    classes = [Settings, InfraSettings, *filter(None, (job.settings_class() for job in JOBS))]
    wanted = {f"{one.model_config['env_prefix']}{name}".upper() for one in classes for name in one.model_fields}
    assert {*variables} == wanted


def test_a_value_says_where_it_comes_from(monkeypatch, tmp_path):
    monkeypatch.setenv("KAPPA_TRIGGER_SECONDS", "5")
    found = {one.variable: one for one in catalogue()}
    assert (found["KAPPA_TRIGGER_SECONDS"].value, found["KAPPA_TRIGGER_SECONDS"].source) == ("5.0", "environment")
    assert found["KAPPA_TRIGGER_SECONDS"].default == "2.0"
    assert found["KAPPA_DRAIN_SECONDS"].source == "default"


@pytest.mark.parametrize(
    ("variable", "value", "shown"),
    [
        ("KAPPA_KAFKA_SASL_PASSWORD", "hunter2", MASK),
        ("KAPPA_ELASTICSEARCH_PASSWORD", "hunter2", MASK),
        ("KAPPA_ELASTICSEARCH_API_KEY", "hunter2", MASK),
        ("KAPPA_ELASTICSEARCH_URL", "https://elastic:hunter2@es:9200", f"https://{MASK}@es:9200"),
        (
            "KAPPA_SPARK_CONF",
            '{"spark.hadoop.fs.s3a.secret.key": "hunter2", "spark.hadoop.fs.s3a.endpoint": "http://u:hunter2@s3"}',
            f'{{"spark.hadoop.fs.s3a.secret.key": "{MASK}", "spark.hadoop.fs.s3a.endpoint": "http://{MASK}@s3"}}',
        ),
    ],
)
def test_secrets_are_masked(monkeypatch, variable, value, shown):
    monkeypatch.setenv(variable, value)
    result = RUNNER.invoke(app, ["settings", "--json"])
    assert result.exit_code == 0 and "hunter2" not in result.output
    assert {one["variable"]: one["value"] for one in json.loads(result.output)}[variable] == shown
    assert "hunter2" not in RUNNER.invoke(app, ["settings"]).output


def test_a_secret_from_a_file_is_masked(monkeypatch, tmp_path):
    (tmp_path / "kappa_kafka_sasl_password").write_text("hunter2")
    monkeypatch.setenv("KAPPA_SECRETS", str(tmp_path))
    result = RUNNER.invoke(app, ["settings", "--json"])
    (found,) = [one for one in json.loads(result.output) if one["variable"] == "KAPPA_KAFKA_SASL_PASSWORD"]
    assert (found["value"], found["source"]) == (MASK, "file")
    assert "hunter2" not in result.output


def test_a_wrong_value_is_named(monkeypatch):
    monkeypatch.setenv("KAPPA_DETECTOR_ALARMS_PER_DAY", "-3")
    with pytest.raises(UserError, match=r"KAPPA_DETECTOR_ALARMS_PER_DAY='-3'.* greater than 0"):
        list(catalogue())
