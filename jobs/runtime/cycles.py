"""When Python searches its objects for cycles, in a worker that keeps a large state from one batch to the next.

Objects are freed when nobody refers to them, without a search; it is for those that only refer to each other.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

SEARCH_EVERY = 200  # such a time of a worker; the cycles of so many, which Spark's serializers make, are a few MB

_times = count(1)


@contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """What is made meanwhile isn't searched for cycles, neither now nor later, but for each 200th time.

    A fold makes millions of small objects and no cycles: to look for some takes a sixth of the statistics' time. And
    after each task Spark's worker looks through all that there is (pyspark/daemon.py), each state included.
    """
    gc.disable()
    try:
        yield
    finally:
        if next(_times) % SEARCH_EVERY == 0:
            gc.unfreeze()
            gc.collect()
        gc.freeze()
        gc.enable()
