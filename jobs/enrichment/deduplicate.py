"""Removes what the real-time mode wrote twice: for a consumer that reads partitions of `events` in order."""

from typing import Any


class Once:
    """Tells new records of one partition of `events` from repeated ones, with a few numbers of state.

    Records of one source partition come in the order of their offsets; after a failure the mode begins again at an
    earlier offset. So what isn't beyond the last place seen of its source partition is a repetition. A micro-batch
    job's records need none of this, nor do they mind it; retried records (`retried`) stand outside that order.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], tuple[int, int]] = {}

    def is_new(self, record: dict[str, Any]) -> bool:
        """Whether this is the first time; watermarks and retried records always are."""
        if "source" not in record or record.get("retried"):
            return True
        source, number = record["source"], int(record["id"].rsplit("-", 1)[1])
        partition, place = (source["topic"], source["partition"]), (source["offset"], number)
        if place <= self._last.get(partition, (-1, -1)):
            return False
        self._last[partition] = place
        return True
