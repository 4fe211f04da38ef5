"""What a query does whose sources aren't those of its checkpoint: the map of topics has other formats than before.

Spark goes by its last two plans. A source that they don't have begins where it began at first, and of one that the
query lacks nothing is said. So a format that is put back later would be read twice. How far it was read, the consumer
group knows.
"""

from collections.abc import Mapping, Sequence

import structlog

from connectors.kafka.offsets import Log
from infra.contract.offsets import Offsets
from infra.errors import UserError
from jobs.runtime.checkpoint import Checkpoint

log = structlog.get_logger()


def settle_sources(
    query: str, sources: Mapping[str, Sequence[str]], checkpoint: Checkpoint, committed: int, kafka: Log
) -> None:
    """Have a source that is back go on where it was left; to be called by the owner before the query starts.

    Args:
        query: the consumer group, which has the name of the query.
        sources: the topics of each source that the query has now.
        checkpoint: the query's.
        committed: how many batches of the query are committed.
        kafka: the log.

    Raises UserError if a batch was begun and not ended with a source that is gone: what was written of it can't be told
    from what was not.
    """
    planned = checkpoint.planned()
    if planned < 0:
        return
    known = checkpoint.ends(planned)
    gone = sorted(known.keys() - sources.keys())
    if gone and committed <= planned:
        raise UserError(
            f"{query}: batch {planned} was begun with {', '.join(gone)}, which the map of topics lacks: start the job "
            "once with the former map (KAPPA_TOPICS_FILE), stop it with SIGTERM, which ends the batch, then change it"
        )
    for name in sources.keys() - known.keys():
        if checkpoint.has_read(name):
            offsets = _left_at(query, sources[name], kafka)
            checkpoint.begin_again(name, offsets)
            log.info("source is back", query=query, source=name, topics=sources[name])


def _left_at(query: str, topics: Sequence[str], kafka: Log) -> Offsets:
    """How far these topics were read, where the log begins if they were not."""
    starts = kafka.starts(topics)
    committed = kafka.committed(query, starts)
    return {place: committed[place] or start for place, start in starts.items()}
