import os
import subprocess
import sys

import pytest

from infra.errors import UserError
from jobs.rules.rule import SECOND
from jobs.rules.settings import RulesSettings
from jobs.runtime.job_settings import load_job_settings
from jobs.table import JOBS


def test_the_shipped_rules_are_the_default(monkeypatch):
    monkeypatch.setenv("KAPPA_RULES_FILE", "")  # as compose passes a variable that isn't set
    settings = load_job_settings(JOBS["rules"])
    assert isinstance(settings, RulesSettings)
    assert [rule.id for rule in settings.rules()] == ["load-jump", "memory-errors", "silent-guest"]
    assert settings.state_ttl_nano == 7 * 86_400 * SECOND


def test_a_wrong_time_to_live_names_the_variable(monkeypatch):
    monkeypatch.setenv("KAPPA_RULES_STATE_TTL", "a week")
    with pytest.raises(UserError, match="KAPPA_RULES_STATE_TTL='a week': write a whole number and a unit"):
        load_job_settings(JOBS["rules"])


def test_a_wrong_file_ends_with_one_line_and_code_2_even_if_no_broker_answers(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text("rules: [{id: hot, kind: rise}]")
    environment = {**os.environ, "KAPPA_RULES_FILE": str(file), "KAPPA_KAFKA_BOOTSTRAP": "127.0.0.1:1"}
    command = [sys.executable, "-m", "ops.cli", "run", "rules"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"kappa: {file}: rule hot: kind='rise': there are change, sequence, absence\n"
