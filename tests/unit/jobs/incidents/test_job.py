"""The fold of incidents as the runtime feeds it."""

import random
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.incidents.job import IncidentsShard
from jobs.runtime.shard_state import Input
from tests.unit.jobs.folds import cuts_of, fed
from tests.unit.jobs.incidents.test_fold import PARTITIONS, log_of, story


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32).map(random.Random), st.data())
def test_neither_cuts_nor_workers_show_in_state_and_data(rng, chosen):
    partitions, values = zip(*log_of(*story(rng)), strict=True)
    log, opener = Input("novelties", 0, range(len(values)), values, partitions), partial(IncidentsShard, PARTITIONS)
    assert fed(opener, log, chosen.draw(cuts_of(len(values)))) == fed(opener, log)
