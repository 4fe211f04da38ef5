"""Every setting of the runtime, from the environment (`KAPPA_...`) or flags, checked before anything starts."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import DirectoryPath, Field, FilePath, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import NoDecode

from connectors.kafka.security import KafkaSecurity
from infra.errors import UserError
from infra.settings import describe
from jobs.runtime.replay import Replay

LARGEST_BATCH_BYTES = 256 * 2**20
_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


class Settings(KafkaSecurity):
    """The environment of all jobs: servers, storage, Spark, metrics, logs. A job's own settings are another class."""

    kafka_bootstrap: str = Field("127.0.0.1:9092", pattern=r"^[^\s:,]+:\d+(,[^\s:,]+:\d+)*$")
    elasticsearch_url: str = Field("http://127.0.0.1:9200", pattern=r"^https?://\S+$")
    elasticsearch_user: str | None = None  # with a password; not with an API key
    elasticsearch_password: SecretStr | None = None
    elasticsearch_api_key: SecretStr | None = None  # instead of user and password
    elasticsearch_ca: FilePath | None = None  # PEM; default: the system's
    # Of the users in Kafka that `kappa acl` makes: kappa-detector runs the application `detector`.
    principal_prefix: str = Field("kappa-", pattern=r"^[A-Za-z0-9._-]*$")
    # A folder with a folder for KAPPA_SECRETS for each such user: who each process is that `kappa run all` starts.
    identities: DirectoryPath | None = None
    home: Path = Path(".kappa")  # the one folder for data, checkpoints, logs
    checkpoints: str | None = None  # a folder or URL; default: under home
    delta: str | None = None  # the same for the tables
    storage_shared: bool = True  # whether every job, and who commands, reaches these places
    platform: Literal["processes", "compose", "kubernetes"] = "processes"  # what runs the jobs of a new generation
    stack: str = Field(
        "kappa", pattern=r"^[a-z0-9][a-z0-9_-]{0,52}$"
    )  # name of compose's project, or the chart's release
    topics_file: Path | None = None  # default: infra/topics.yaml
    optional_jobs: Annotated[tuple[str, ...], NoDecode] = ()  # that run too, separated by commas: notifier, rules
    # small: `kappa run all` is one process with one Spark application, instead of a process for each application.
    profile: Literal["standard", "small"] = "standard"
    # Whose topics, checkpoints, tables and indices.
    generation: str = Field("live", pattern=r"^[a-z0-9][a-z0-9-]{0,30}$")
    replay: Replay = Replay()  # what a generation's first job reads; set from the topic `generations`

    instance: str = Field("0", pattern=r"^[A-Za-z0-9.-]{1,200}$")  # of an indexer: each needs another one

    spark_master: str = "local[2,4]"  # 4: a task is retried before the job fails
    # More Spark configuration, as JSON; what correctness rests on (session.py) can't be changed.
    spark_conf: dict[str, str] = Field(default_factory=dict)
    driver_memory: str = Field("1g", pattern=r"^\d+[kmgt]$")  # heap of a job's JVM
    # Jobs look for records four times as often. Enrichment has a batch each time, statistics gather for as long as this
    # unless a window ends: a batch costs some 0.2 and 0.5 s of CPU time however few records it has.
    trigger_seconds: float = Field(2.0, gt=0)
    # Each commit has Delta read its log anew: at 30 s two fifths of the archive's CPU time.
    archive_trigger_seconds: float = Field(60.0, gt=0)
    realtime_batch_seconds: int = Field(60, ge=5)  # what `enrichment --realtime` reads again after a failure
    # Bounds a batch, and with it the memory of a job that has a backlog.
    # So many scrapes of 31 points are 15 s of 100,000 events/s; with one event a record it must be 31 times as many.
    max_offsets_per_trigger: int = Field(50_000, gt=0)
    # Bounds a batch too, by what records at a few places of the log have on average when a job starts. By default a
    # quarter of driver_memory, at most 256 MB.
    max_batch_bytes: int | None = Field(None, ge=1024**2)
    # Fixed for the life of a checkpoint, as state is partitioned by it. About one a core.
    shuffle_partitions: int = Field(2, gt=0)
    transaction_timeout_seconds: int = Field(600, ge=10, le=900)  # a batch must end within it
    # How long a start waits for a broker that doesn't answer; the supervisor sets it for jobs that it restarts.
    broker_patience_seconds: float = Field(0.0, ge=0)
    drain_seconds: float = Field(60.0, gt=0)  # how long a stop waits for the running micro-batch

    # /healthz fails when a query has committed nothing and ended no task for so long, though there are records to read.
    stall_seconds: float = Field(900.0, ge=10)
    metrics_host: str = "127.0.0.1"  # where /metrics, /healthz and /readyz listen
    metrics_port: int = Field(9400, ge=0, le=65535)  # 0: any free one; `run all` counts up from it
    # PEM, with a key: they then speak HTTPS only. Both files are read again when they change.
    metrics_certificate: FilePath | None = None
    metrics_key: FilePath | None = None  # of the certificate, without a password
    # Holds the token that whoever asks must send, but for whether a job is healthy or ready.
    metrics_token_file: FilePath | None = None
    metrics_ca: FilePath | None = None  # PEM of the CA that whoever asks the jobs trusts; default: the system's
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "json"  # console: for a person at a terminal

    @field_validator("optional_jobs", mode="before")
    @classmethod
    def _by_comma(cls, value: object) -> object:
        return tuple(filter(None, (name.strip() for name in value.split(",")))) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _has_certificate_and_key(self) -> Self:
        if bool(self.metrics_certificate) != bool(self.metrics_key):
            missing, given = ("KEY", "CERTIFICATE") if self.metrics_certificate else ("CERTIFICATE", "KEY")
            raise ValueError(f"KAPPA_METRICS_{missing}: is missing; KAPPA_METRICS_{given} needs it")
        return self

    @property
    def batch_bytes(self) -> int:
        """About how many bytes of records, unpacked, a batch may hold."""
        if self.max_batch_bytes is not None:
            return self.max_batch_bytes
        heap = int(self.driver_memory[:-1]) * _UNITS[self.driver_memory[-1]]
        return min(LARGEST_BATCH_BYTES, heap // 4)

    @property
    def look_seconds(self) -> float:
        """How often a job looks for records: where a replay bounds its rate each look is a batch, so less often."""
        return self.trigger_seconds if self.replay.max_rate else self.trigger_seconds / 4

    def checkpoint_of(self, query: str) -> str:
        """The folder or URL of a query's checkpoint."""
        return f"{_root(self.checkpoints, self.home / 'checkpoints')}/{self.generation}/{query}"

    def savepoint_of(self, name: str) -> str:
        """The folder or URL of a savepoint, beside the checkpoints of the generations."""
        return self.model_copy(update={"generation": ".savepoints"}).checkpoint_of(name)

    def delta_of(self, table: str) -> str:
        """The folder or URL of a Delta table of the generation."""
        return f"{_root(self.delta, self.home / 'delta')}/{self.generation}/{table}"

    def check_storage_is_shared(self) -> None:
        """Raises UserError if checkpoints, savepoints and tables are out of reach, each on its job's own volume."""
        if not self.storage_shared:
            raise UserError(
                "storage_shared=False: each job has a volume of its own, which nobody else reaches; set "
                "storage.existingClaim, or storage.checkpoints and storage.delta, in the chart's values"
            )

    def elasticsearch_identity(self) -> dict[str, Any]:
        """Credentials and certificate authority, as options of Elasticsearch's client."""
        key, password = self.elasticsearch_api_key, self.elasticsearch_password
        options = {
            "api_key": key.get_secret_value() if key else None,
            "basic_auth": (self.elasticsearch_user, password.get_secret_value()) if password else None,
            "ca_certs": str(self.elasticsearch_ca) if self.elasticsearch_ca else None,
        }
        return {name: value for name, value in options.items() if value}

    def identity_of(self, application: str) -> dict[str, str]:
        """The variables that make a process the user in Kafka that runs an application, if there is one for each.

        Raises UserError if this application's is missing.
        """
        if self.identities is None:
            return {}
        folder = self.identities.resolve() / f"{self.principal_prefix}{application}"
        if not folder.is_dir():
            raise UserError(
                f"KAPPA_IDENTITIES={self.identities}: has no {folder.name}; `kappa acl apply --users` makes it"
            )
        return {"KAPPA_SECRETS": str(folder)}

    def query_of(self, job: str) -> str:
        """The name of a job's query: it names its consumer group, and its transactional ids begin with it."""
        return query_name(self.generation, job)


def _root(given: str | None, usual: Path) -> str:
    """A URL as it is, or the absolute path of a folder: each process may work in another one."""
    return given if given and "://" in given else str(Path(given or usual).resolve())


def query_name(generation: str, job: str) -> str:
    """The name of a job's query in a generation."""
    return f"kappa.{generation}.{job}"


def load_settings(**flags: Any) -> Settings:
    """Settings from the environment, overridden by those flags that are not None.

    Raises UserError naming the variable, the value and what it must be.
    """
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        raise UserError(describe(error, prefix="KAPPA_")) from None


def present_identity() -> dict[str, Any]:
    """Who this process is in Elasticsearch, as the environment and the files of secrets have it now."""
    try:
        return load_settings().elasticsearch_identity()
    except UserError:  # a file is being replaced
        return {}


def load_storage_settings(**flags: Any) -> Settings:
    """The same, of a command that reads or writes what the jobs keep: checkpoints, savepoints, tables.

    Raises UserError, also if that is out of its reach.
    """
    settings = load_settings(**flags)
    settings.check_storage_is_shared()
    return settings
