from jobs.runtime.health import Health


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def watched(*queries: str) -> tuple[Health, Clock]:
    clock = Clock()
    health = Health(clock)
    health.watch(queries)
    return health, clock


def at(offset: int) -> dict[tuple[str, int], int]:
    return {("events", 0): offset}


def test_a_query_that_commits_nothing_while_records_wait_is_stalled():
    health, clock = watched("statistics")
    health.measured("statistics", at(5), 3)
    clock.now += 59
    health.measured("statistics", at(5), 4)
    assert health.stalled(60) is None
    clock.now += 1
    assert health.stalled(60) == "statistics: no progress for 60 s, 4 records wait"
    assert health.quiet_seconds("statistics") == 60
    health.measured("statistics", at(6), 4)
    assert health.stalled(60) is None


def test_a_query_with_nothing_to_read_may_rest_and_its_time_begins_with_the_first_record():
    health, clock = watched("statistics")
    health.measured("statistics", at(5), 0)
    clock.now += 10_000
    health.measured("statistics", at(5), 0)
    clock.now += 50
    health.measured("statistics", at(5), 1)
    assert health.stalled(60) is None
    clock.now += 60
    assert health.stalled(60)


def test_a_beat_is_progress_too():
    health, clock = watched("indexer")
    health.measured("indexer", at(5), 9)
    for _ in range(10):
        clock.now += 50
        health.beat("indexer")
        health.measured("indexer", at(5), 9)
        assert health.stalled(60) is None
    health.beat("another process's")


def test_what_can_not_be_measured_is_not_judged_and_its_time_begins_anew():
    health, clock = watched("statistics")
    health.measured("statistics", at(5), 9)
    clock.now += 100
    health.not_measured("statistics")
    assert (health.stalled(60), health.quiet_seconds("statistics")) == (None, 0.0)
    health.measured("statistics", at(5), 9)
    assert health.stalled(60) is None
    clock.now += 60
    assert health.stalled(60)


def test_a_leader_that_does_not_answer_is_neither_progress_nor_nothing_to_read():
    health, clock = watched("statistics")
    both = {("events", 0): 5, ("events", 1): 7}
    health.measured("statistics", both, 3)
    for answer in ({("events", 1): 7}, {}, both):
        clock.now += 20
        health.measured("statistics", answer, 3 if answer == both else 0)
    assert health.stalled(60) == "statistics: no progress for 60 s, 3 records wait"
    assert health.unready()


def test_a_process_is_ready_when_each_query_has_committed_a_batch_or_found_nothing_to_read():
    health, _ = watched("statistics", "archive.log")
    assert health.unready() == "no batch committed yet: statistics, archive.log"
    health.measured("archive.log", at(0), 0)
    health.measured("statistics", at(5), 9)
    assert health.unready() == "no batch committed yet: statistics"
    health.measured("statistics", at(5), 10)
    assert health.unready() == "no batch committed yet: statistics"
    health.measured("statistics", at(9), 10)
    assert health.unready() is None
    health.measured("statistics", at(9), 10)
    assert health.unready() is None
