"""The declaration of the detector job."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson
from pydantic_settings import BaseSettings

from infra.contract.sharding import Mine
from infra.contract.topics import TopicMap
from infra.contract.versions import version_header
from jobs.detector.queryable import StateQuestion
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard
from jobs.runtime.job import Fold
from jobs.runtime.packed_state import Parts
from jobs.runtime.queryable import Question
from jobs.runtime.shard_state import Input, Opener, Output


def _opener(own: BaseSettings | None, topics: TopicMap) -> Opener:
    assert isinstance(own, DetectorSettings)
    return partial(DetectorShard, for_one_shard(own, topics))


def for_one_shard(settings: DetectorSettings, topics: TopicMap) -> DetectorSettings:
    """The settings of one shard: its part of the fleet's alarm budget follows from how many there are."""
    return settings.model_copy(update={"shards": topics["statistics"].partitions})


class DetectorShard:
    """The state of one partition of `statistics`, see `jobs.runtime.shard_state`: gives the records of `novelties`."""

    def __init__(self, settings: DetectorSettings, parts: Parts | None = None) -> None:
        self.shard = Shard(settings, parts)

    def feed(self, batch: Input) -> list[Output]:
        """Take records of `statistics`; returns those for the same partition of `novelties`, and dead letters."""
        before = self.shard.watermark
        novelties, rejected = self.shard.take(batch.messages())
        headers = (("kappa.source", f"{batch.topic}/{batch.shard}".encode()), version_header("novelties"))
        outputs = [
            Output(one["machine"], orjson.dumps(one), one["time_unix_nano"], headers, note=_note(one))
            for one in novelties
        ]
        if self.shard.watermark > before:
            outputs.append(Output.of_watermark(self.shard.watermark))
        return outputs + [Output.of_rejected("detector", *one) for one in rejected]

    def dump(self) -> Parts:
        """The state as parts."""
        return self.shard.dump()

    def retain(self, mine: Mine) -> None:
        """Forget the machines whose key isn't `mine`."""
        self.shard.retain(mine)


def _questions(own: BaseSettings | None) -> tuple[Question, ...]:
    assert isinstance(own, DetectorSettings)
    return (StateQuestion(own).question(),)


def _note(novelty: Mapping[str, Any]) -> str | None:
    """As what a record is counted: alerts by verdict, each once."""
    return f"alert_{novelty['verdict']}" if novelty["phase"] == "start" else None


FOLD = Fold(_opener, questions=_questions)
