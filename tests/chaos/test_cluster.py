"""The chain on Spark's own cluster manager, of which drivers, executors and workers are killed."""

from tests.chaos.chain import SPARK_JOBS
from tests.chaos.standalone import driver_target, executor_target, worker_target
from tests.chaos.storm import KILLS, SEED, storm


def test_storm_over_a_standalone_cluster(spread_chain, standalone, play, tmp_path):
    """Of so many kills in all, two fifths are of executors and two of drivers, each of which comes back elsewhere."""
    chain, nodes = spread_chain, tmp_path / "nodes"
    with play(chain, "kill -9 of executors, workers and drivers of a standalone cluster") as scenario:
        chain.catch_up()
        drivers = [driver_target(chain, name, nodes) for name in SPARK_JOBS]
        for targets, kills in (
            ([executor_target(standalone)], 2 * KILLS // 5),
            ([worker_target(standalone)], KILLS // 5),
            (drivers, 2 * KILLS // 5 // len(drivers)),
        ):
            scenario.kills += storm(chain, targets, max(1, kills), SEED)
