"""The declaration of the incidents job."""

from functools import partial

import orjson
from pydantic_settings import BaseSettings

from infra.contract.sharding import Mine
from infra.contract.topics import TopicMap
from infra.contract.versions import version_header
from jobs.incidents.fold import Incidents
from jobs.runtime.job import Fold
from jobs.runtime.packed_state import Parts
from jobs.runtime.shard_state import Input, Opener, Output


def _opener(_: BaseSettings | None, topics: TopicMap) -> Opener:
    return partial(IncidentsShard, topics["novelties"].partitions)


class IncidentsShard:
    """The state of all partitions of `novelties`, see `jobs.runtime.shard_state`: gives the records of `incidents`."""

    def __init__(self, partitions: int, parts: Parts | None = None) -> None:
        self.incidents = Incidents(partitions, parts)

    def feed(self, batch: Input) -> list[Output]:
        """Take records of `novelties`; returns those of `incidents`, and dead letters."""
        found, rejected = self.incidents.feed(batch.messages())
        headers = (version_header("incidents"),)
        outputs = [Output(one["id"], orjson.dumps(one), one["time_unix_nano"], headers) for one in found]
        return outputs + [Output.of_rejected("incidents", *one) for one in rejected]

    def dump(self) -> Parts:
        """The state as parts."""
        return self.incidents.dump()

    def retain(self, mine: Mine) -> None:
        """It is the shard of all partitions, and is never divided: all machines are its own."""


FOLD = Fold(_opener, whole_topic=True)
