"""Has Spark keep checkpoints and tables in S3, or in what speaks like it, through Hadoop's client: URLs of s3a://.

Where it is and who we are say AWS's own variables, which every client of S3 knows: Hadoop's, Delta's in `kappa sql`,
Arrow's in savepoints. AWS_ENDPOINT_URL names a store that isn't AWS's, with http:// one without TLS.
"""

from collections.abc import Mapping
from pathlib import Path

from infra.jars import fetch
from jobs.runtime.settings import Settings

SCHEME = "s3a://"
ENDPOINT = "AWS_ENDPOINT_URL"
_CLIENT = "spark.hadoop.fs.s3a"


def jars(settings: Settings) -> list[Path]:
    """What Spark needs for these settings beside its own jars and the project's; fetched if absent."""
    return sorted(fetch("s3").glob("*.jar")) if _has_checkpoints(settings) or _has_tables(settings) else []


def conf(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Spark's configuration for these settings; credentials stay in the environment, where the client looks itself."""
    if not _has_checkpoints(settings) and not _has_tables(settings):
        return {}
    found = {f"{_CLIENT}.endpoint.region": environment.get("AWS_REGION", "us-east-1")}
    if endpoint := environment.get(ENDPOINT):
        # Of stores of one's own, few have a host name for each bucket.
        found |= {f"{_CLIENT}.endpoint": endpoint, f"{_CLIENT}.path.style.access": "true"}
    if _has_checkpoints(settings):
        found["spark.sql.streaming.checkpointFileManagerClass"] = "kappa.S3Checkpoint"
    if _has_tables(settings):
        found["spark.delta.logStore.s3a.impl"] = "kappa.S3Log"
    return found


def plain_url(place: str) -> str:
    """A folder or URL as clients other than Hadoop's call it."""
    return place.replace(SCHEME, "s3://", 1)


def delta_options(environment: Mapping[str, str]) -> dict[str, str]:
    """What deltalake must be told of the store beside AWS's variables, which it reads."""
    return {"AWS_ALLOW_HTTP": "true"} if environment.get(ENDPOINT, "").startswith("http:") else {}


def _has_checkpoints(settings: Settings) -> bool:
    return settings.checkpoint_of("").startswith(SCHEME)


def _has_tables(settings: Settings) -> bool:
    return settings.delta_of("").startswith(SCHEME)
