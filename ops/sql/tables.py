"""Which tables can be asked: those of the promoted generation, by their names in SQL."""

from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from infra.contract.topics import LIVE, load_topics
from infra.errors import UserError
from jobs.runtime.settings import Settings

# Of Hadoop's client, what deltalake calls otherwise.
_S3 = {
    "spark.hadoop.fs.s3a.endpoint": "AWS_ENDPOINT_URL",
    "spark.hadoop.fs.s3a.access.key": "AWS_ACCESS_KEY_ID",
    "spark.hadoop.fs.s3a.secret.key": "AWS_SECRET_ACCESS_KEY",
    "spark.hadoop.fs.s3a.endpoint.region": "AWS_REGION",
}
CURRENT = "current"  # the generation under which the pointer stands, see ops/replay/views.py


@dataclass(frozen=True)
class Table:
    """A Delta table, and the generation whose it is."""

    name: str
    path: str
    generation: str

    def open(self, options: dict[str, str]) -> DeltaTable | None:
        """The table as of its newest version; None if it isn't there yet."""
        try:
            return DeltaTable(self.path.replace("s3a://", "s3://"), storage_options=options or None)
        except TableNotFoundError:
            return None


def storage_options(settings: Settings) -> dict[str, str]:
    """How to reach an object store, from the settings of Spark's client; credentials may be in the environment."""
    options = {ours: value for theirs, ours in _S3.items() if (value := settings.spark_conf.get(theirs))}
    if options.get("AWS_ENDPOINT_URL", "").startswith("http:"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


def promoted_tables(settings: Settings) -> list[Table]:
    """The tables that readers see: as `kappa replay promote` has left them, before any promotion the live ones.

    Raises UserError if they are out of reach.
    """
    settings.check_storage_is_shared()
    pointer = Table(CURRENT, settings.model_copy(update={"generation": CURRENT}).delta_of("tables"), CURRENT)
    try:
        found = pointer.open(storage_options(settings))
    except OSError as error:
        raise UserError(f"{pointer.path}: can't be read: {error}") from None
    if found is not None:
        rows = found.to_pyarrow_table().to_pylist()
        tables = [Table(_sql_name(row["table"]), row["path"], row["generation"]) for row in rows]
    else:
        live = settings.model_copy(update={"generation": LIVE})
        parsed = [key for key, topic in load_topics(settings.topics_file).topics.items() if topic.archive == "parsed"]
        tables = [Table(_sql_name(key), live.delta_of(key), LIVE) for key in parsed]
    return sorted(tables, key=lambda table: table.name)


def _sql_name(key: str) -> str:
    return key.replace(".", "_")
