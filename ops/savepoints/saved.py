"""What a savepoint says, of a job or of all, and where the sink keeps the same of a job that runs."""

from typing import Annotated, Any, Literal

from confluent_kafka import TopicPartition
from pydantic import BaseModel, ConfigDict, Field

from connectors.kafka.client import open_consumer
from connectors.kafka.markers import Marker, ProgressSettings, list_slots, read_markers
from infra.contract.offsets import StoredOffsets
from infra.contract.topics import GENERATION
from jobs.runtime.settings import Settings
from ops.savepoints.archive import Listed
from ops.savepoints.landmarks import Landmark


class SavedMarker(BaseModel):
    """The progress marker of one task, see docs/explanation/exactly-once.md."""

    model_config = ConfigDict(frozen=True)

    slot: int
    done: int
    tasks: int


class Savepoint(BaseModel):
    """What a savepoint was taken of."""

    model_config = ConfigDict(frozen=True)

    name: str
    job: Annotated[str, Field(pattern=r"^[a-z]+$")]
    generation: Annotated[str, Field(pattern=f"^{GENERATION}$")]  # part of paths, as the job is
    batch: int  # the last that is done in it
    planned: bool  # whether the next one has its offsets already
    run: str  # the checkpoint's identity
    offsets: StoredOffsets
    landmarks: tuple[Landmark, ...] = ()  # of these offsets; an earlier version took none
    sources: tuple[str, ...]
    shared: tuple[str, ...] = ()  # topics that several of its sources read
    markers: tuple[SavedMarker, ...]
    driver: int  # batches that the driver has committed
    shuffle_partitions: int
    settings: dict[str, Any]
    layout: dict[str, list[str]]  # of the packed state
    shards: int
    taken: str = ""  # when, for people; an earlier version didn't say
    files: dict[str, Listed] = {}  # of the copy; an earlier version didn't list them

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(one.bytes for one in self.files.values())

    @property
    def topics(self) -> list[str]:
        """The topics whose offsets it holds, in their order."""
        return list(dict.fromkeys(topic for topic, _ in self.offsets))

    @property
    def is_settled(self) -> bool:
        """Whether the markers belong to this batch: nothing was written since the copy was taken."""
        return self.fits([self.driver, *(marker.done for marker in self.markers)])

    def fits(self, done: list[int]) -> bool:
        """Whether a job that has written so many batches can go on from here."""
        return max(done, default=0) <= self.batch + 1 + self.planned


class ChainSavepoint(BaseModel):
    """What a savepoint of all jobs of a generation was taken of."""

    model_config = ConfigDict(frozen=True)

    name: str
    job: Literal["all"] = "all"
    generation: Annotated[str, Field(pattern=f"^{GENERATION}$")]
    taken: str  # when, for people
    jobs: tuple[str, ...]
    queries: dict[Annotated[str, Field(pattern=r"^[a-z]+(\.[a-z.]+)?$")], Savepoint]  # part of paths
    groups: dict[str, StoredOffsets]  # jobs that keep nothing but the offsets of their group -> these
    ends: StoredOffsets  # of the topics that one job alone writes: where its savepoint's last batch ended
    landmarks: tuple[Landmark, ...] = ()  # of the groups and these ends; an earlier version took none
    identities: dict[str, str] = {}  # of the topics; an earlier version didn't ask for them
    files: dict[str, Listed]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(one.bytes for one in self.files.values())


def tasks_of(settings: Settings, query: str, run: str) -> ProgressSettings:
    """Whose progress markers those of a query's tasks are."""
    return ProgressSettings(settings.kafka_bootstrap, query, run, client=settings.client())


def driver_of(settings: Settings, query: str, run: str) -> ProgressSettings:
    """Whose progress marker that of a query's driver is."""
    return tasks_of(settings, f"{query}.driver", run)


def markers_of(progress: ProgressSettings) -> tuple[SavedMarker, ...]:
    """The markers as they stand; one in an open transaction is not waited for."""
    markers = read_markers(progress, list_slots(progress), "read_uncommitted")
    return tuple(SavedMarker(slot=slot, done=marker.done, tasks=marker.tasks) for slot, marker in markers.items())


def marker_to_commit(progress: ProgressSettings, slot: int, done: int, tasks: int) -> TopicPartition:
    """A task's marker as `commit` takes it: batches done, and the tasks of the last one."""
    return Marker(done, progress.run, tasks).committable(progress.progress_topic, slot)


def commit(progress: ProgressSettings, group: str, offsets: list[TopicPartition]) -> None:
    """Commit these offsets, or markers, for a consumer group."""
    if offsets:
        with open_consumer(progress.connection, group) as consumer:
            consumer.commit(offsets=offsets, asynchronous=False)
