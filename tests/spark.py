"""The end of Spark in a process that goes on."""

import gc

from pyspark import SparkContext

SECONDS = 60


def end_spark() -> None:
    """Stop Spark and its JVM, and let go of the Python objects that it could call. Does nothing the second time.

    Both hold Kafka clients, which would log for ever that a broker is gone, after pytest's summary too.
    """
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    if context is not None:
        context.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()  # on which the JVM ends
        gateway.proc.wait(SECONDS)
        gateway.gateway_property.pool.clear()
        SparkContext._gateway = SparkContext._jvm = None
    gc.collect()
