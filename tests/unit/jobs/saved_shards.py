"""States of folds in files, as the workers leave them for each other."""

from jobs.runtime.queryable import Decoded, SavedShard
from jobs.runtime.state_cache import Cached, Place, StateCache, shard_folders

QUERY = "2f1c"


def put(root, parts, shard=0, version="first"):
    """Leave the state of a shard."""
    StateCache(root).put(Place(QUERY, "topic", shard), version, Cached(parts))


def saved_shards(root):
    """The shards that were left."""
    decoded = Decoded()
    return [SavedShard(number, folder, decoded) for number, folder in sorted(shard_folders(root, QUERY))]
