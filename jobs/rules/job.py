"""The declaration of the rules job."""

from collections.abc import Sequence
from functools import partial

import orjson
from pydantic_settings import BaseSettings

from infra.contract.sharding import Mine
from infra.contract.topics import TopicMap
from infra.contract.versions import version_header
from jobs.rules.fold import RuleFold
from jobs.rules.rule import Rule
from jobs.rules.settings import RulesSettings
from jobs.runtime.job import Fold
from jobs.runtime.packed_state import Parts
from jobs.runtime.shard_state import Input, Opener, Output

_STEP = 2_000_000_000  # ns of event time: an alert a little later is worth a quarter of the batches


def _opener(own: BaseSettings | None, _: TopicMap) -> Opener:
    assert isinstance(own, RulesSettings)
    return partial(RulesShard, own.rules(), own.state_ttl_nano)


class RulesShard:
    """The state of one partition of `events`, see `jobs.runtime.shard_state`: gives the records of `alerts`."""

    def __init__(self, rules: Sequence[Rule], state_ttl: int, parts: Parts | None = None) -> None:
        self.fold = RuleFold(rules, state_ttl, parts)

    def feed(self, batch: Input) -> list[Output]:
        """Take records of `events`; returns those for the same partition of `alerts`, and dead letters."""
        before = self.fold.watermark
        alerts, rejected = self.fold.feed(batch.messages())
        headers = (("kappa.source", f"{batch.topic}/{batch.shard}".encode()), version_header("alerts"))
        outputs = [Output(one["machine"], orjson.dumps(one), one["time_unix_nano"], headers) for one in alerts]
        outputs.sort(key=lambda one: (one.time_unix_nano, one.key or "", one.value))
        if self.fold.watermark > before:
            outputs.append(Output.of_watermark(self.fold.watermark))
        return outputs + rejected

    def dump(self) -> Parts:
        """The state as parts."""
        return self.fold.dump()

    def retain(self, mine: Mine) -> None:
        """Forget the machines whose key isn't `mine`."""
        self.fold.retain(mine)


FOLD = Fold(_opener, step=lambda _: _STEP)
