"""Java's classes, as Python calls them."""

from functools import cache
from typing import Any

from pyspark.sql import SparkSession


def java_class(spark: SparkSession, name: str) -> Any:
    """The class with this full name in the session's JVM.

    It is looked up once, and by its whole name: of a path such as `jvm.org.apache` py4j tries to load each part as a
    class, and the JVM looks for that in each of Spark's 280 jars.
    """
    return _looked_up(spark._jvm, name)


# Not by the session: Spark makes one for each micro-batch.
@cache
def _looked_up(jvm: Any, name: str) -> Any:
    return getattr(jvm, name)
