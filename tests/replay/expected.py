"""What the detector must say, by its own fold over the records of `statistics`, without Spark or batches."""

from collections import Counter, defaultdict

import orjson

from jobs.detector import shard
from jobs.detector.settings import DetectorSettings
from tests.chaos.reading import read_topic

Records = dict[int, list[tuple[int, bytes]]]  # partition -> (offset, value), in order


def statistics(bootstrap: str, topic: str) -> Records:
    """The records of a topic by partition, watermarks among them."""
    found: Records = defaultdict(list)
    for record in read_topic(bootstrap, topic):
        found[record.place.partition].append((record.place.offset, record.value))
    return found


def novelties(records: Records, settings: DetectorSettings, before: dict[int, int] | None = None) -> Counter[bytes]:
    """What is told of these records, or of those before an offset of each partition; with how often, as bytes."""
    settings = settings.model_copy(update={"shards": len(records)})
    told: Counter[bytes] = Counter()
    for partition, placed in records.items():
        values = [value for offset, value in placed if before is None or offset < before[partition]]
        told.update(map(orjson.dumps, shard.fold(None, values, settings)[1]))
    return told


def held(bootstrap: str, topic: str) -> Counter[bytes]:
    """The values that a topic holds, watermarks left out."""
    return Counter(record.value for record in read_topic(bootstrap, topic) if record.key is not None)
