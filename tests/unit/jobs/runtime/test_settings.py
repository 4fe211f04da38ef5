"""Settings: defaults that work, and errors that name the variable."""

from pathlib import Path

import pytest

from infra.errors import UserError
from jobs.runtime.replay import Replay
from jobs.runtime.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("HOME", "CHECKPOINTS", "DELTA", "GENERATION", "KAFKA_BOOTSTRAP"):
        monkeypatch.delenv(f"KAPPA_{name}", raising=False)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("KAPPA_KAFKA_BOOTSTRAP", "localhost"),
        ("KAPPA_KAFKA_BOOTSTRAP", "a:1,b"),
        ("KAPPA_ELASTICSEARCH_URL", "localhost:9200"),
        ("KAPPA_GENERATION", "V2"),
        ("KAPPA_TRIGGER_SECONDS", "0"),
        ("KAPPA_TRIGGER_SECONDS", "soon"),
        ("KAPPA_MAX_OFFSETS_PER_TRIGGER", "-1"),
        ("KAPPA_SHUFFLE_PARTITIONS", "0"),
        ("KAPPA_TRANSACTION_TIMEOUT_SECONDS", "1000"),
        ("KAPPA_DRIVER_MEMORY", "lots"),
        ("KAPPA_METRICS_PORT", "70000"),
        ("KAPPA_LOG_LEVEL", "loud"),
    ],
)
def test_a_wrong_value_is_named_with_its_variable(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(UserError) as refused:
        load_settings()
    assert str(refused.value).startswith(f"{variable}={value!r}: ")
    assert "\n" not in str(refused.value)


def test_a_flag_wins_over_the_environment_and_an_absent_one_does_not(monkeypatch):
    monkeypatch.setenv("KAPPA_GENERATION", "v2")
    assert load_settings(generation="v3").generation == "v3"
    assert load_settings(generation=None).generation == "v2"


def test_who_we_are_for_elasticsearch(tmp_path):
    (tmp_path / "ca.crt").write_text("ca")
    assert load_settings().elasticsearch_identity() == {}
    by_name = load_settings(elasticsearch_user="kappa", elasticsearch_password="secret")
    assert by_name.elasticsearch_identity() == {"basic_auth": ("kappa", "secret")}
    assert "secret" not in str(by_name)
    by_key = load_settings(elasticsearch_api_key="key", elasticsearch_ca=tmp_path / "ca.crt")
    assert by_key.elasticsearch_identity() == {"api_key": "key", "ca_certs": str(tmp_path / "ca.crt")}


def test_a_job_looks_four_times_a_trigger_interval_but_not_in_a_replay_of_bounded_rate():
    assert load_settings(trigger_seconds=2.0).look_seconds == 0.5
    assert load_settings(trigger_seconds=2.0, replay=Replay(max_rate=100)).look_seconds == 2.0


def test_more_spark_configuration_is_json(monkeypatch):
    monkeypatch.setenv("KAPPA_SPARK_CONF", '{"spark.executor.instances": "2"}')
    assert load_settings().spark_conf == {"spark.executor.instances": "2"}


def test_each_generation_has_its_own_checkpoints_tables_and_queries():
    live, second = load_settings(home=Path("/data")), load_settings(home=Path("/data"), generation="v2")
    assert live.checkpoint_of("statistics") == "/data/checkpoints/live/statistics"
    assert second.checkpoint_of("statistics") == "/data/checkpoints/v2/statistics"
    assert (live.delta_of("events"), second.delta_of("events")) == ("/data/delta/live/events", "/data/delta/v2/events")
    assert (live.query_of("detector"), second.query_of("detector")) == ("kappa.live.detector", "kappa.v2.detector")


def test_checkpoints_and_tables_may_lie_elsewhere():
    settings = load_settings(checkpoints="s3a://bucket/checkpoints", delta="s3a://bucket/delta")
    assert settings.checkpoint_of("statistics") == "s3a://bucket/checkpoints/live/statistics"
    assert settings.delta_of("events") == "s3a://bucket/delta/live/events"


def test_a_relative_folder_is_the_same_for_whoever_works_elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    settings = load_settings(home=Path("home"), checkpoints="kept/checkpoints", delta="kept/delta")
    assert settings.checkpoint_of("statistics") == f"{tmp_path}/kept/checkpoints/live/statistics"
    assert settings.delta_of("events") == f"{tmp_path}/kept/delta/live/events"
    assert load_settings(home=Path("home")).delta_of("log") == f"{tmp_path}/home/delta/live/log"


def test_each_application_can_be_a_user_of_its_own(tmp_path):
    (tmp_path / "kappa-detector").mkdir()
    settings = load_settings(identities=tmp_path)
    assert settings.identity_of("detector") == {"KAPPA_SECRETS": str(tmp_path / "kappa-detector")}
    assert load_settings().identity_of("detector") == {}
    with pytest.raises(UserError, match=r"KAPPA_IDENTITIES=.*: has no kappa-archive; `kappa acl"):
        settings.identity_of("archive")


@pytest.mark.parametrize(
    ("memory", "given", "megabytes"), [("512m", None, 128), ("1g", None, 256), ("4g", None, 256), ("512m", 2**30, 1024)]
)
def test_a_batch_holds_a_quarter_of_the_heap_unless_it_is_said(memory, given, megabytes):
    assert Settings(driver_memory=memory, max_batch_bytes=given).batch_bytes == megabytes * 2**20
