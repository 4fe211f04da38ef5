import pytest

from jobs.runtime import object_store
from jobs.runtime.object_store import conf, delta_options, plain_url
from jobs.runtime.settings import Settings

OWN = {"AWS_ENDPOINT_URL": "https://minio:9000", "AWS_SECRET_ACCESS_KEY": "hunter2"}


def test_without_a_store_nothing_is_added(tmp_path):
    settings = Settings(home=tmp_path, delta="hdfs://nodes/delta")
    assert conf(settings, OWN) == {}
    assert object_store.jars(settings) == []


def test_checkpoints_and_tables_have_writers_that_replace_nothing():
    settings = Settings(checkpoints="s3a://bucket/checkpoints", delta="s3a://bucket/delta")
    assert conf(settings, {"AWS_REGION": "eu-north-1"}) == {
        "spark.hadoop.fs.s3a.endpoint.region": "eu-north-1",
        "spark.sql.streaming.checkpointFileManagerClass": "kappa.S3Checkpoint",
        "spark.delta.logStore.s3a.impl": "kappa.S3Log",
    }


def test_tables_alone_may_be_in_a_store_of_ones_own_and_no_secret_is_passed_on(tmp_path):
    assert conf(Settings(home=tmp_path, delta="s3a://bucket/delta"), OWN) == {
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.endpoint": "https://minio:9000",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.delta.logStore.s3a.impl": "kappa.S3Log",
    }


def test_a_url_is_called_as_others_than_hadoop_do():
    assert plain_url("s3a://bucket/delta") == "s3://bucket/delta"
    assert plain_url("/var/lib/kappa") == "/var/lib/kappa"


@pytest.mark.parametrize(
    ("endpoint", "options"), [("http://minio:9000", {"AWS_ALLOW_HTTP": "true"}), ("https://minio:9000", {}), ("", {})]
)
def test_a_store_without_tls_is_allowed_where_it_is_named(endpoint, options):
    assert delta_options({"AWS_ENDPOINT_URL": endpoint}) == options
