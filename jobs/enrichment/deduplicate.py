"""Recognises the records that the real-time mode wrote twice, for consumers that read a partition in order."""

from typing import Any


class Deduplicator:
    """Recognises duplicates in one partition of `events`; its state is one offset for each source partition.

    Records of one source partition come in the order of their source offsets; after a failure the real-time mode starts
    again at an earlier offset. So a record whose source offset isn't beyond the last one seen is a duplicate. The
    micro-batch mode writes no duplicates, so all of its records pass. Retried dead letters (`retried`) are outside the
    order of offsets and always pass.
    """

    def __init__(self) -> None:
        # (topic, partition) -> the offset, and the number of the batch within that record, of the last new one
        self._last: dict[tuple[str, int], tuple[int, int]] = {}

    def is_new(self, record: dict[str, Any]) -> bool:
        """Whether a record, as parsed JSON, was not seen before; always true for watermarks and retried records."""
        if "source" not in record or record.get("retried"):
            return True
        source, number = record["source"], int(record["id"].rsplit("-", 1)[1])
        partition, offset = (source["topic"], source["partition"]), (source["offset"], number)
        if offset <= self._last.get(partition, (-1, -1)):
            return False
        self._last[partition] = offset
        return True
